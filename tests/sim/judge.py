"""Play a world and say what is wrong with it."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.sim.cluster import Cluster
from tests.sim.code_patches import CODE_PATCHES
from tests.sim.goals import GOALS, PATCHED_GOALS
from tests.sim.graph_patches import PATCHED_GRAPHS
from tests.sim.graphs import GRAPHS
from tests.sim.hooks import HOOKS
from tests.sim.hot import HOT
from tests.sim.invariants import breaches
from tests.sim.requests import REQUESTS
from tests.sim.workflows import CODE, Cast

REGRESSIONS = Path(__file__).with_name("regressions.txt")
CASTS = {
    cast.name: cast for cast in (CODE, GRAPHS, PATCHED_GRAPHS, GOALS, PATCHED_GOALS, REQUESTS, CODE_PATCHES, HOOKS, HOT)
}


class Verdict:
    """Of one seed."""

    def __init__(self, seed: int, found: list[str], cluster: Cluster) -> None:
        self.seed = seed
        self.cast = cluster.cast.name
        self.breaches = found
        self.reached: Counter[str] = cluster.ledger.reached + Counter(
            {f"fault {kind}": count for kind, count in cluster.swarm.seen.items()}
        )
        if cluster.redis is not None:
            self.reached += Counter({f"fault {kind}": count for kind, count in cluster.redis.faults.seen.items()})

    def __str__(self) -> str:
        listed = "\n  ".join(self.breaches[:10])
        again = f"python -m tests.sim.soak 1 --seed {self.seed} --only {self.cast}"
        return f"{self.cast}, seed {self.seed} ({again}):\n  {listed}"


def judge(seed: int, cast: Cast = CODE) -> Verdict:
    """Play the world of a seed to its end."""
    cluster = Cluster(seed, cast=cast)
    try:
        cluster.play()
        found = breaches(cluster)
    except Exception as error:
        found = ["it broke: " + "".join(traceback.format_exception(error))]
    finally:
        cluster.close()
    return Verdict(seed, found, cluster)


def digest(seed: int, cast: Cast = CODE) -> str:
    """All that happens in the world of a seed, in short."""
    cluster = Cluster(seed, cast=cast)
    try:
        cluster.play()
    finally:
        cluster.close()
    return cluster.ledger.digest()


def failures(seeds: Iterable[int], cast: Cast = CODE) -> list[Verdict]:
    """The verdicts of those seeds that keep not every promise."""
    return [verdict for seed in seeds if (verdict := judge(seed, cast)).breaches]


def regressions() -> list[tuple[str, int]]:
    """Seeds that failed once, with whom they were played: they are played for ever."""
    lines = REGRESSIONS.read_text("utf-8").splitlines()
    found = [line.split()[:2] for line in lines if line.strip() and not line.startswith("#")]
    return [(name, int(seed)) for name, seed in found]
