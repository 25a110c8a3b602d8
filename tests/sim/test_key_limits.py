"""In worlds where everything goes wrong, no more of a limited step are taken at once or in a second than allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.scale import scaled
from tests.sim.cluster import Cluster
from tests.sim.invariants import breaches
from tests.sim.workflows import CODE
from weft.core.ids import HostId, Millis
from weft.ports.tasks import STEP_LIMIT, Exchanged, KeyLimit, TaskOffer
from weft.runtime.key_limits import DeclaredLimit
from weft.stores.memory import MemoryStore
from weft.stores.memory.tasks import MemoryTasks

AT_ONCE, IN_A_SECOND = 2, 5
SEEDS = scaled(4, 200)


class WatchedTasks(MemoryTasks):
    """Looks at all places after every call that hands out tasks."""

    def __init__(self, cluster: LimitedCluster) -> None:
        super().__init__(cluster.store.content)
        self._cluster = cluster

    async def take(self, host: HostId, *, now: Millis, **wanted: Any) -> Sequence[TaskOffer]:
        taken = await super().take(host, now=now, **wanted)
        self._look(taken, now)
        return taken

    async def exchange(
        self, host: HostId, finished: Sequence[TaskOffer], offered: Sequence[TaskOffer], *, now: Millis, most: int
    ) -> Exchanged:
        done = await super().exchange(host, finished, offered, now=now, most=most)
        self._look(done.taken, now)
        return done

    def _look(self, taken: Sequence[TaskOffer], now: Millis) -> None:
        content = self._content
        rows = [row for row in (*content.tasks.values(), *content.unwanted) if row.host is not None]
        self._cluster.see(Counter(row.offer.limit for row in rows), [offer.limit for offer in taken], now)


class LimitedCluster(Cluster):
    """A world whose steps have limits, which an oracle checks by itself."""

    def __init__(self, seed: int) -> None:
        self.most: Counter[str] = Counter()
        self.starts: dict[str, list[Millis]] = {}
        super().__init__(seed, cast=CODE)

    def share(self) -> MemoryStore:
        share = super().share()
        share.tasks = WatchedTasks(self)
        return share

    def see(self, running: Counter[str], begun: Sequence[str], now: Millis) -> None:
        self.most |= running
        for name in begun:
            self.starts.setdefault(name, []).append(now)

    def most_in_a_second(self) -> int:
        """How many of a step began in any second, by the clock of the host that asked."""
        return max(
            sum(1 for at in times if since <= at < since + 1_000) for times in self.starts.values() for since in times
        )


@pytest.fixture
def _limits() -> Iterator[None]:
    limits = CODE.app.registered.limits
    limit = DeclaredLimit(KeyLimit(concurrency=AT_ONCE, rate=IN_A_SECOND))
    limits.update({f"{STEP_LIMIT}{step}": limit for step in CODE.app.registered.step_names()})
    yield
    limits.clear()


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_limits_hold_and_every_run_ends(seed: int) -> None:
    cluster = LimitedCluster(seed)
    try:
        cluster.play()
        assert breaches(cluster) == []
    finally:
        cluster.close()
    assert max(cluster.most.values()) <= AT_ONCE
    if not cluster.swarm.skew_ms:
        assert cluster.most_in_a_second() <= IN_A_SECOND
