"""A hot store over a memory store that fails by a script, and short words for what tests of it say over and over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.code.timeless import calm, play
from tests.contract.kit import HERE, RUN, append, new
from tests.hot.memory_server import Disk, MemoryWalServer
from tests.runtime.flaky import FlakyStore, Mishap, Script
from weft.core.ids import Epoch, HostId, RunUid
from weft.ports.store import Append, Outcome
from weft.stores.hot.policy import END, HotPolicy
from weft.stores.hot.store import HotStore
from weft.stores.memory.content import StoredRun

ACCEPTED = [Outcome.ACCEPTED]


class HotScene:
    """One process with a WAL, and a run of it that is attached and has no events."""

    def __init__(self, policy: HotPolicy, server: Callable[[Disk], MemoryWalServer], *mishaps: Mishap) -> None:
        self.script = Script()
        self.mishaps = mishaps
        self.durable = FlakyStore(self.script)
        self.disk = Disk()
        self.store = HotStore(self.durable, server(self.disk), policy=policy)

    async def begin(self, *others: str) -> None:
        await self.store.open()
        await self.store.hosts.join(HERE, lease_ms=60_000)
        for uid in (RUN, *others):
            assert await self.commit(append(uid, count=0, create=new(uid))) == ACCEPTED
        self.script.batches.clear()
        self.script.mishaps.extend(self.mishaps)

    async def commit(self, *batch: Append, host: HostId = HERE) -> list[Outcome]:
        return list(await self.store.log.commit(batch, host))

    async def hop(self, seq: int = 0, *, uid: str = RUN, count: int = 1, **fields: Any) -> None:
        """Commit a plain hop."""
        assert await self.commit(append(uid, seq=seq, count=count, **fields)) == ACCEPTED

    async def claim(self, expected: int) -> list[int]:
        """Claim the run for its own host. Returns its new epoch, if it was granted one."""
        rows = await self.store.log.claim([RunUid(RUN)], HERE, expected={RunUid(RUN): Epoch(expected)})
        return [row.epoch for row in rows]

    async def flush(self) -> None:
        await self.store.through_lane.flush()

    def stored(self, uid: str = RUN) -> StoredRun:
        """The run as the durable store has it."""
        return self.durable.content.runs[RunUid(uid)]

    def entries(self) -> int:
        """How many entries the server has."""
        return sum(len(wal.entries) for wal in self.disk.wals.values())


def hot_scene(
    acts: Callable[[HotScene], Awaitable[None]],
    *mishaps: Mishap,
    policy: HotPolicy = END,
    others: tuple[str, ...] = (),
    server: Callable[[Disk], MemoryWalServer] = MemoryWalServer,
) -> HotScene:
    """Play a scene to its end in virtual time."""
    scene = HotScene(policy, server, *mishaps)

    async def whole() -> None:
        await scene.begin(*others)
        await acts(scene)
        await calm()
        await scene.store.close()

    play(whole())
    return scene
