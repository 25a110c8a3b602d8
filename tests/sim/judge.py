"""Play a world and say what is wrong with it."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.sim.cluster import Cluster
from tests.sim.invariants import breaches

REGRESSIONS = Path(__file__).with_name("regressions.txt")


class Verdict:
    """Of one seed."""

    def __init__(self, seed: int, found: list[str], cluster: Cluster) -> None:
        self.seed = seed
        self.breaches = found
        self.digest = cluster.ledger.digest()
        self.reached: Counter[str] = cluster.ledger.reached + Counter(
            {f"fault {kind}": count for kind, count in cluster.swarm.seen.items()}
        )

    def __str__(self) -> str:
        listed = "\n  ".join(self.breaches[:10])
        return f"seed {self.seed} (python -m tests.sim.soak 1 --seed {self.seed}):\n  {listed}"


def judge(seed: int) -> Verdict:
    """Play the world of a seed to its end."""
    cluster = Cluster(seed)
    try:
        cluster.play()
        found = breaches(cluster)
    except Exception as error:
        found = ["it broke: " + "".join(traceback.format_exception(error))]
    finally:
        cluster.close()
    return Verdict(seed, found, cluster)


def failures(seeds: Iterable[int]) -> list[Verdict]:
    """The verdicts of those seeds that keep not every promise."""
    return [verdict for seed in seeds if (verdict := judge(seed)).breaches]


def regressions() -> list[int]:
    """Seeds that failed once: they are played for ever."""
    lines = REGRESSIONS.read_text("utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]
