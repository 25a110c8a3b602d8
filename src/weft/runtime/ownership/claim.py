"""Claim runs that nobody works on: their owner is gone, their time has come, or there is mail for them.

A claim raises the epoch of a run, which ends every earlier owner. Then the run is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any
from zlib import crc32

from weft.core import events as e
from weft.core.ids import Epoch, HostId, Millis, RunUid
from weft.ports.boundary import boundary
from weft.ports.clock import Clock
from weft.ports.store import Outcome, RunRow, Store
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.ownership.load import Loader
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.runs import RunTable
from weft.runtime.shared import SharedTasks
from weft.runtime.status import HostStatus
from weft.runtime.turns import Newborn, Turns

CLAIMS_PER_SCAN = 500
LOADS_PER_TURN = 50
SHARE_MIN = 20
"""So few runs are not worth sharing."""
UNCLAIMED = Epoch(0)
"""The epoch of a run that was created for no host."""


class Claims:
    """Finds runs that this host should have, and takes them."""

    def __init__(
        self,
        store: Store,
        host: HostId,
        runs: RunTable,
        loader: Loader,
        *,
        catalogue: HostCatalogue,
        clock: Clock,
        status: HostStatus,
        shared: SharedTasks,
        turns: Turns,
        newborn: Newborn,
        background: BackgroundTasks,
        retry: RetryUntilAvailable,
        reload: Callable[[Actor, None, Outcome], Coroutine[Any, Any, None]],
    ) -> None:
        self._log = store.log
        self._directory = store.directory
        self._hosts = store.hosts
        self._host = host
        self._runs = runs
        self._loader = loader
        self._catalogue = catalogue
        self._clock = clock
        self._status = status
        self._shared = shared
        self._turns = turns
        self._newborn = newborn
        self._background = background
        self._retry_until_available = retry
        self._reload = reload
        self._claiming: set[RunUid] = set()
        self._dead: Sequence[HostId] = ()
        """Hosts that were gone when this host last looked."""
        self.wake_at: Millis | None = None
        """When time alone next makes a run claimable that nobody has in memory."""
        self.backlog = 0
        """How many runs were seen that could go on if there were room in memory."""

    def is_claiming(self, uid: RunUid) -> bool:
        """Whether this run is being claimed right now."""
        return uid in self._claiming

    def is_run_due(self) -> bool:
        """Whether the time of a run has come that nobody has in memory."""
        return self.wake_at is not None and self.wake_at <= self._clock.now_ms()

    def on_released(self, wake_at: Millis) -> None:
        """A run was released that must be claimed again at this time."""
        if self.wake_at is None or wake_at < self.wake_at:
            self.wake_at = wake_at

    async def scan(self) -> int:
        """Look for dead hosts, then claim what nobody works on and this host can run. Returns how many."""
        await self.find_dead()
        return await self.claim_ready()

    async def find_dead(self) -> None:
        """Look which hosts are gone, and take their tasks back."""
        self._dead = await self._hosts.dead(monotonic=self._clock.monotonic())
        await self._shared.expire(self._dead)

    async def claim_ready(self) -> int:
        """Claim runs that nobody works on and this host can run. Returns how many."""
        dead = self._dead
        total = 0
        while not self._status.closing:
            rows = await self._directory.claimable(
                self._catalogue.programs(), dead=dead, now=self._clock.now_ms(), limit=CLAIMS_PER_SCAN
            )
            fresh = [row for row in rows if row.uid not in self._claiming and row.uid not in self._runs.actors]
            room = self._runs.room()
            self.backlog = max(0, len(fresh) - room)
            share = await self._share(fresh)
            taken = await self.claim(share[:room])
            total += taken
            if not taken or self.backlog or (len(rows) < CLAIMS_PER_SCAN and len(share) == len(fresh)):
                break
        self.wake_at = await self._directory.next_wake(self._catalogue.programs(), dead=dead)
        return total

    async def _share(self, rows: Sequence[RunRow]) -> Sequence[RunRow]:
        """What this host takes first of runs that others may be after too: hosts that start together begin apart."""
        if len(rows) <= SHARE_MIN:
            return rows
        hosts = len(await self._hosts.living())
        if hosts < 2:
            return rows
        apart = sorted(rows, key=lambda row: crc32(f"{self._host}{row.uid}".encode()))
        return apart[: max(SHARE_MIN, -(-len(rows) // hosts))]

    async def claim(self, rows: Sequence[RunRow]) -> int:
        """Claim those of these runs whose log can be read here, and go on with them."""
        readable = [row for row in rows if row.format <= e.FORMAT]
        died = {row.uid for row in readable if row.owner is not None}
        return await self._claim_and_load({row.uid: row.epoch for row in readable}, died)

    async def claim_new(self, uids: Sequence[RunUid]) -> None:
        """Begin runs before the time until which they were put off, unless somebody has or there is no room."""
        room = self._runs.room()
        await self._claim_and_load(dict.fromkeys(uids[:room], UNCLAIMED), ())

    async def _claim_and_load(self, epochs: Mapping[RunUid, Epoch], died: Collection[RunUid]) -> int:
        if not epochs:
            return 0
        self._claiming.update(epochs)
        try:
            claimed = await self._claim(epochs)
            boundary("recovery.claimed")
            for i, row in enumerate(claimed, 1):
                if row.uid not in self._runs.actors:
                    await self._loader.load_run(row, died=row.uid in died)
                if i % LOADS_PER_TURN == 0:
                    await asyncio.sleep(0)  # a store may answer at once, and others have something to do too
        finally:
            self._claiming.difference_update(epochs)
        return len(claimed)

    async def _claim(self, expected: Mapping[RunUid, Epoch]) -> list[RunRow]:
        """Those that are ours now.

        A claim without an answer is made again: it went through, or the second one fences it.
        """
        asked = 0

        async def claim() -> list[RunRow]:
            nonlocal asked
            asked += 1
            claimed = await self._log.claim(list(expected), self._host, expected=expected)
            if asked == 1:
                return list(claimed)
            names = {row.uid for row in claimed}
            rest = [await self._directory.row(uid) for uid in expected if uid not in names]
            ours = [row for row in rest if row is not None and row.owner == self._host and row.ended_at is None]
            return [*claimed, *ours]

        return await self._retry_until_available(claim)

    async def reconcile(self) -> None:
        """Compare what is in memory with what the store says is ours.

        What others took while this host was away leaves memory, so that whoever waits for it here hears of it; what is
        ours and not in memory, because the answer to a claim was lost for good, is taken up.
        """
        known = list(self._runs.actors.values())
        owned = await self._directory.owned(self._host)
        for actor in known:
            here = self._runs.is_current(actor) and actor.ready and actor.is_idle()
            if here and owned.get(actor.uid) != actor.epoch:
                self._background.spawn(self._reload(actor, None, Outcome.STALE_EPOCH))
        for uid in owned:
            await self._turns.share()
            if uid not in self._runs.actors and uid not in self._claiming and uid not in self._newborn.waiting:
                await self._loader.load(uid)
