"""What is measured on Postgres, beside whom, and the floors that Weft must keep there."""

import sys
from pathlib import Path

from bench.bars import Bar, Look, divided
from bench.systems import System, python_of

STORE = "postgres"
WORKLOADS = ("hosts", "seeds")
_HERE = Path(sys.executable)

SYSTEMS = (
    System(
        "weft",
        STORE,
        "bench.workloads.weft_postgres",
        _HERE,
        {
            "W1": (("W1", 1000),),
            "W2": (("W2", 2000), ("W2", 500), ("W2-latency", 200)),
            "W3": (("W3", 500),),
            "W4": (("W4", 1000), ("W4-lease", 1000)),
            "W5": (("W5", 2000),),
            "W6": (("W6", 100), ("W6", 1000), ("W6", 5000)),
            "hosts": (("W2-1", 2000), ("W2-2", 2000)),
            "seeds": (("seeds", 2000),),
        },
    ),
    System("raw", STORE, "bench.workloads.raw_postgres", _HERE, {"W1": (("W1", 2000),)}),
    System(
        "dbos",
        STORE,
        "bench.peers.dbos_bench",
        python_of("dbos"),
        {
            "W1": (("W1", 1000),),
            "W2": (("W2", 500), ("W2-latency", 50)),
            "W3": (("W3", 500),),
            "W4": (("W4", 1000),),
        },
    ),
    System(
        "langgraph",
        STORE,
        "bench.peers.langgraph_bench",
        python_of("langgraph"),
        {
            "W1": (("W1", 500),),
            "W2": (("W2", 300), ("W2-latency", 50)),
            "W3": (("W3", 500),),
            "W4": (("W4", 500),),
        },
    ),
)


def bars(look: Look) -> list[Bar]:
    """The floors of issue 6; ``look`` sees rows of this store only."""

    def weft(workload: str, metric: str, n: int | None = None) -> float | None:
        return look("weft", workload, metric, n)

    def dbos(workload: str, metric: str) -> float | None:
        return look("dbos", workload, metric, None)

    raw = look("raw", "W1", "steps_per_s", None)
    steps, runs = weft("W1", "steps_per_s"), weft("W2", "runs_per_s", 2000)
    one, two = weft("W2-1", "runs_per_s"), weft("W2-2", "runs_per_s")
    return [
        Bar("Postgres: W1 steps/s, times DBOS", "≥", 7, divided(steps, dbos("W1", "steps_per_s"))),
        Bar("Postgres: W1 steps/s, of raw commits/s", "≥", 0.5, divided(steps, raw)),
        Bar("Postgres: W2 runs/s, times DBOS", "≥", 25, divided(runs, dbos("W2", "runs_per_s"))),
        Bar("Postgres: W2 runs/s of 2,000 at once over 500", "≥", 0.9, divided(runs, weft("W2", "runs_per_s", 500))),
        Bar(
            "Postgres: W3 DBOS's seconds, times Weft's", "≥", 10, divided(dbos("W3", "seconds"), weft("W3", "seconds"))
        ),
        Bar(
            "Postgres: W4 DBOS's µs per replayed step, times Weft's",
            "≥",
            10,
            divided(dbos("W4", "us_per_step"), weft("W4", "us_per_step")),
        ),
        Bar("Postgres: W2 runs/s of two hosts over one", "≥", 1.25, divided(two, one)),
    ]
