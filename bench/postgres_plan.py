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


BUSY = 0.85
"""With this part of the cores in use, they are the limit."""


def notes(look: Look, cores: int) -> list[str]:
    """What the figures on Postgres mean, in words: limits, and the seeds' own figures beside ours."""
    return [*_flush(look), *_limit(look, cores), *_seeds(look)]


def _flush(look: Look) -> list[str]:
    raw, dbos = (look(system, "W1", "steps_per_s", None) for system in ("raw", "dbos"))
    if raw is None or dbos is None:
        return []
    told = (
        f"W1 waits for the disk: a bare commit takes {1e3 / raw:.2f} ms here, so bare commits alone are "
        f"{raw / dbos:.1f} times DBOS's steps/s. Nothing that is durable step by step exceeds that."
    )
    return [told]


def _limit(look: Look, cores: int) -> list[str]:
    def of(count: int, metric: str) -> float:
        return look("weft", f"W2-{count}", metric, None) or 0.0

    one, two = of(1, "runs_per_s"), of(2, "runs_per_s")
    if not (one and two):
        return []
    hosts, server = of(2, "cores_of_hosts"), of(2, "cores_of_server")
    told = (
        f"Two hosts: {two:,.0f} runs/s, {two / one:.2f} times one. Meanwhile they used {hosts:.2f} of {cores} cores, "
        f"and Postgres {server:.2f}; of a run's CPU time the hosts take {hosts / two * 1e3:.2f} ms, "
        f"Postgres {server / two * 1e3:.2f} ms. "
    )
    if hosts + server >= BUSY * cores:
        return [told + "The limit is the cores, most of all in the hosts: each is one Python process on one core."]
    waits = (
        "the disk, which flushes the commits of both hosts one after another, and for cores that other programs used"
    )
    return [f"{told}Cores were left: the limit is the wait for {waits}."]


def _seeds(look: Look) -> list[str]:
    found = [look("weft", "seeds", metric, None) for metric in ("transitions_per_s", "hop_ms", "runs_per_minute")]
    transitions, hop_ms, runs = found
    if transitions is None or hop_ms is None or runs is None:
        return []
    told = (
        f"The seeds' figures, one host, all events persisted: {transitions:,.0f} transitions/s (seed: about 1,000 with "
        f"one coordinator), {hop_ms:.2f} ms per hop (seed: 5 to 10), {runs:,.0f} runs/minute (seed: 60,000)."
    )
    return [told]
