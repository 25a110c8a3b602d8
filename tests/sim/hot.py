"""Worlds with a hot path: the real hot store before a faulty one, and a simulated Redis."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tests.sim.full import FullStore
from tests.sim.hot_ledger import HotLedger
from tests.sim.redis import RedisFaults, SimRedis, SimWalServer
from tests.sim.swarm import Swarm
from tests.sim.workflows import CODE, Cast, Kind, looped, sequence
from weft.core.ids import HostId
from weft.errors import Unavailable
from weft.ports.store import Append, Outcome, RunLog, Store
from weft.ports.wals import Loss, Wals
from weft.stores.hot.store import HotStore
from weft.stores.memory.content import MemoryContent
from weft.stores.memory.wals import MemoryWals
from weft.testing.faults import Rates, StoreCall

HOPS = {
    "sequence": Kind(
        sequence, lambda r: {"n": r.randrange(100), "length": r.randint(2, 9)}, lambda a: a["n"] + a["length"], weight=8
    ),
    "looped": Kind(
        looped, lambda r: {"n": r.randrange(100), "rounds": r.randint(2, 9)}, lambda a: a["n"] + a["rounds"], weight=4
    ),
}
"""Those that hop most, longer than elsewhere."""
HOT = Cast(
    "hot", CODE.app, tuple({**CODE.kinds, **HOPS}.values()), lacks=CODE.lacks, runs=(3, 7), hot=True,
)  # fmt: skip


def suit(swarm: Swarm, faults: RedisFaults) -> None:
    """Let hops take their time, so that there is always one under way, and spare hosts where only Redis fails."""
    moods = swarm.moods
    moods.slow = max(moods.slow, 0.4)
    if faults.alone == "redis":
        swarm.kills = swarm.freezes = swarm.stops = swarm.boundary = swarm.jumps = 0.0
        swarm.rates = Rates()
        faults.rates = msgspec.structs.replace(faults.rates, die=0.0)
        moods.die_before = moods.die_after = 0.0


class AwayStore(FullStore):
    """A store that is away for a while: for everybody, or for one host that still reaches Redis."""

    def __init__(self, *args: Any, seed: int, host: int) -> None:
        super().__init__(*args)
        r = Random(f"away-{seed}" if seed % 2 else f"away-{seed}-{host}")
        begin = r.uniform(0, self._swarm.seconds)
        self._away = (begin, begin + r.choice((0.5, 3.0, 14.0))) if r.random() < 0.3 else (0.0, 0.0)

    async def _carry(self, call: StoreCall) -> Any:
        if self._away[0] < self._loop.time() < self._away[1] and self._swarm.rates != Rates():
            self._swarm.seen["store away"] += 1
            raise Unavailable(f"{call.what}: the store is away (simulated).")
        return await super()._carry(call)


class ObservedWals(MemoryWals):
    """Tells Redis, which knows what it holds, when somebody gives up a WAL."""

    def __init__(self, content: MemoryContent, redis: SimRedis) -> None:
        super().__init__(content)
        self._redis = redis

    async def mark_drained(self, wal: int, *, forced: bool = False, loss: Loss | None = None) -> bool:
        marked = await super().mark_drained(wal, forced=forced, loss=loss)
        if marked and forced:
            self._redis.forced(wal)
        return marked


class SimHotStore(HotStore):
    """The hot store of one process. It tells the ledger what it acknowledges."""

    def __init__(self, durable: FullStore, redis: SimRedis) -> None:
        super().__init__(cast("Store", durable), SimWalServer(redis), policy=redis.faults.policy)
        self._bind_parts(cast("Wals", durable.wals))
        self.log = cast("RunLog", ObservedHotLog(self.log, redis.ledger))


class ObservedHotLog:
    """The log of a hot store."""

    def __init__(self, inner: Any, ledger: HotLedger) -> None:
        self._inner = inner
        self._ledger = ledger

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value) if name.startswith("_") else setattr(self._inner, name, value)

    @property
    def hot(self) -> ObservedHotLog:
        return self

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        return self._tell(batch, host, await self._inner.commit(batch, host))

    async def hop(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        return self._tell(batch, host, await self._inner.hop(batch, host))

    def _tell(self, batch: Sequence[Append], host: HostId, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        for append, outcome in zip(batch, outcomes, strict=True):
            if outcome is Outcome.ACCEPTED and append.reopen is None:
                self._ledger.acked(append, host)
        return outcomes
