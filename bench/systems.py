"""Who is measured, on what, and how large: the whole plan of a benchmark run, as data."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.measure import ROOT

PEERS = ROOT / "build" / "bench-peers"
WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W6", "W7", "G2", "G3", "G8", "C", "A2", "A8", "P", "S", "ingress", "live")

# What one process is asked to do: the task's name and its size.
Task = tuple[str, int]


@dataclass(frozen=True, slots=True)
class System:
    """One system: where it keeps its runs, how to start a measured process of it, and its tasks per workload."""

    name: str
    store: str
    module: str
    python: Path
    tasks: dict[str, tuple[Task, ...]]

    @property
    def installed(self) -> bool:
        return self.python.exists()

    def command(self, task: Task, directory: Path) -> list[str]:
        name, n = task
        return [str(self.python), "-m", self.module, name, str(n), str(directory)]


def _steady(*sizes: int) -> tuple[Task, ...]:
    return tuple(("W6", n) for n in sizes)


def python_of(peer: str) -> Path:
    return PEERS / peer / "bin" / "python"


_HERE = Path(sys.executable)

SYSTEMS = (
    System(
        "weft",
        "sqlite",
        "bench.workloads.weft_code",
        _HERE,
        {
            "W1": (("W1", 1000),),
            "W2": (("W2", 2000), ("W2", 500), ("W2-latency", 200)),
            "W3": (("W3", 500),),
            "W4": (("W4", 1000),),
            "W5": (("W5", 2000),),
            "W6": _steady(100, 1000, 5000, 20000),
            "W7": (("W7", 5000), ("W7", 100_000)),
        },
    ),
    System(
        "weft",
        "sqlite",
        "bench.workloads.weft_graph",
        _HERE,
        {
            "G2": (("G2", 2000), ("G2-latency", 200)),
            "G3": (("G3", 500),),
            "G8": (("G8", 100), ("G8", 1000), ("G8", 10_000)),
        },
    ),
    System(
        "weft",
        "sqlite",
        "bench.workloads.weft_goal",
        _HERE,
        {
            "A2": (("A2", 2000), ("A2-frozen", 2000), ("A2-latency", 200)),
            "A8": (("A8", 100), ("A8", 1000), ("A8", 10_000)),
        },
    ),
    System("weft", "none", "bench.workloads.weft_goal", _HERE, {"P": (("P", 10_000),), "S": (("S", 2_000),)}),
    System("weft", "none", "bench.workloads.conditions", _HERE, {"C": (("C", 20_000),)}),
    System(
        "weft",
        "sqlite",
        "bench.workloads.weft_ingress",
        _HERE,
        {"ingress": (("ingress", 5000), ("ingress-first", 1)), "live": (("live", 1000),)},
    ),
    System("raw", "sqlite", "bench.workloads.raw", _HERE, {"W1": (("W1", 2000),)}),
    System(
        "floor",
        "sqlite",
        "bench.workloads.floor",
        _HERE,
        {
            "W1": (("W1", 1000),),
            "W2": (("W2", 2000), ("W2-latency", 200)),
            "W3": (("W3", 500),),
            "W4": (("W4", 1000),),
            "W5": (("W5", 2000),),
            "W6": _steady(100, 1000, 5000, 20000),
        },
    ),
    System(
        "dbos",
        "sqlite",
        "bench.peers.dbos_bench",
        python_of("dbos"),
        {
            "W1": (("W1", 1000),),
            "W2": (("W2", 300), ("W2-latency", 50)),
            "W3": (("W3", 500),),
            "W4": (("W4", 1000),),
            "W5": (("W5", 300),),
            "W6": _steady(100, 1000),
            "W7": (("W7", 300),),
        },
    ),
    System(
        "langgraph",
        "sqlite",
        "bench.peers.langgraph_bench",
        python_of("langgraph"),
        {
            "W1": (("W1", 1000),),
            "W2": (("W2", 500), ("W2-latency", 50)),
            "W3": (("W3", 500),),
            "W4": (("W4", 1000),),
            "W6": _steady(100, 1000),
            "W7": (("W7", 500),),
            "G2": (("G2", 500),),
            "G3": (("G3", 500),),
        },
    ),
    System(
        "restate",
        "rocksdb",
        "bench.peers.restate_bench",
        python_of("restate"),
        {
            "W1": (("W1", 1000),),
            "W2": (("W2", 2000), ("W2-latency", 100)),
            "W3": (("W3", 500),),
            "W4": (("W4", 1000),),
            "W5": (("W5", 2000),),
            "W6": _steady(100, 1000),
            "W7": (("W7", 2000),),
            "ingress": (("ingress", 5000),),
        },
    ),
)

# A quick look leaves out whatever takes more than a few seconds.
QUICK_N_MAX = 5000


def tasks_of(system: System, workload: str, *, n_max: int | None = None) -> list[Task]:
    return [task for task in system.tasks.get(workload, ()) if n_max is None or task[1] <= n_max]
