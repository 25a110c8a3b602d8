"""Claim runs that have something to do and no living owner: their owner is gone, they are due, or they have mail.

A claim raises the epoch of a run, which fences every earlier owner. Then the run is loaded.
"""

from __future__ import annotations

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
from weft.runtime.loop_share import NewChildren, Turns
from weft.runtime.ownership.load import Loader
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.runs import RunTable
from weft.runtime.shared import SharedTasks
from weft.runtime.status import HostStatus
from weft.stores.hot.takeover import Takeover

CLAIMS_PER_SCAN = 100
SHARED_MIN = 20
"""Up to this number, runs are not shared between hosts."""
UNCLAIMED = Epoch(0)
"""The epoch of a run that was created for no host."""


class Claims:
    """Finds runs that this host should own, and claims them."""

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
        new_children: NewChildren,
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
        self._new_children = new_children
        self._background = background
        self._retry_until_available = retry
        self._reload = reload
        self._takeover = Takeover.before(store, clock)
        self._claiming: set[RunUid] = set()
        self.dead: Sequence[HostId] = ()
        """Hosts that were gone at the last check."""
        self.wake_at: Millis | None = None
        """When the next run without a living owner becomes due."""
        self.backlog = 0
        """How many claimable runs were left because memory is full."""
        self.taken_over = 0
        """How many runs of hosts that were gone this host has claimed."""

    def is_claiming(self, uid: RunUid) -> bool:
        """Return whether this run is being claimed right now."""
        return uid in self._claiming

    def is_run_due(self) -> bool:
        """Return whether a run without a living owner is due."""
        return self.wake_at is not None and self.wake_at <= self._clock.now_ms()

    def note_wake(self, wake_at: Millis) -> None:
        """Note that a run without an owner must be claimed at this time."""
        if self.wake_at is None or wake_at < self.wake_at:
            self.wake_at = wake_at

    async def scan(self) -> int:
        """Look for dead hosts, then claim runs without a living owner that this host can run. Returns how many."""
        await self.find_dead()
        return await self.claim_ready()

    @property
    def lost(self) -> int:
        """Return how many runs of hosts that were gone have lost events, or may have."""
        return self._takeover.lost if self._takeover is not None else 0

    async def find_dead(self) -> None:
        """Find hosts that are gone, drain their WALs, and take back their tasks."""
        self.dead = await self._hosts.find_dead(monotonic=self._clock.monotonic())
        if self.dead and self._takeover is not None:
            await self._takeover.take_over([host for host in self.dead if host != self._host])
        await self._shared.expire(self.dead)

    async def claim_ready(self) -> int:
        """Claim runs without a living owner that this host can run. Returns how many."""
        dead = self.dead
        total = 0
        while not self._status.closing:
            rows = await self._directory.claimable(
                self._catalogue.programs(), dead=dead, now=self._clock.now_ms(), limit=CLAIMS_PER_SCAN
            )
            fresh = [row for row in rows if row.uid not in self._claiming and row.uid not in self._runs.actors]
            room = self._runs.room()
            self.backlog = max(0, len(fresh) - room)
            share = await self._own_share(fresh)
            taken = await self.claim(share[:room])
            total += taken
            if not taken or self.backlog or (len(rows) < CLAIMS_PER_SCAN and len(share) == len(fresh)):
                break
        self.wake_at = await self._directory.next_wake(self._catalogue.programs(), dead=dead)
        return total

    async def _own_share(self, rows: Sequence[RunRow]) -> Sequence[RunRow]:
        """Return the runs that this host claims first. Hosts get different shares, so that they rarely collide."""
        if len(rows) <= SHARED_MIN:
            return rows
        hosts = len(await self._hosts.list_living())
        if hosts < 2:
            return rows
        ranked = sorted(rows, key=lambda row: crc32(f"{self._host}{row.uid}".encode()))
        return ranked[: max(SHARED_MIN, -(-len(rows) // hosts))]

    async def claim(self, rows: Sequence[RunRow]) -> int:
        """Claim those of these runs whose log can be read here, and load them. Returns how many."""
        readable = [row for row in rows if row.format <= e.FORMAT]
        died = {row.uid for row in readable if row.owner is not None}
        return await self._claim_and_load({row.uid: row.epoch for row in readable}, died)

    async def claim_new(self, uids: Sequence[RunUid]) -> None:
        """Begin delayed runs before their time, unless another host has claimed them or there is no room."""
        room = self._runs.room()
        await self._claim_and_load(dict.fromkeys(uids[:room], UNCLAIMED), ())

    async def _claim_and_load(self, epochs: Mapping[RunUid, Epoch], died: Collection[RunUid]) -> int:
        if not epochs:
            return 0
        self._claiming.update(epochs)
        try:
            claimed = await self._claim_in_store(epochs)
            boundary("recovery.claimed")
            self.taken_over += sum(row.uid in died for row in claimed)
            for row in claimed:
                await self._turns.share()
                if row.uid not in self._runs.actors:
                    await self._loader.load_run(row, died=row.uid in died)
        finally:
            self._claiming.difference_update(epochs)
        return len(claimed)

    async def _claim_in_store(self, expected: Mapping[RunUid, Epoch]) -> list[RunRow]:
        """Claim runs and return those that this host owns now.

        A claim without an answer is repeated: either the first one succeeded, or the second one fences it.
        """
        attempts = 0

        async def claim() -> list[RunRow]:
            nonlocal attempts
            attempts += 1
            claimed = await self._log.claim(list(expected), self._host, expected=expected)
            if attempts == 1:
                return list(claimed)
            names = {row.uid for row in claimed}
            rest = [await self._directory.row(uid) for uid in expected if uid not in names]
            ours = [row for row in rest if row is not None and row.owner == self._host and row.ended_at is None]
            return [*claimed, *ours]

        return await self._retry_until_available(claim)

    def forget(self, actor: Actor) -> None:
        """Drop the memory of a run that another process may have, so that callers who wait for it are told."""
        self._background.spawn(self._reload(actor, None, Outcome.STALE_EPOCH))

    async def reconcile(self) -> None:
        """Compare the runs in memory with those that this host owns in the store.

        Runs that other hosts claimed meanwhile leave memory, so that callers who wait for them are told. Runs that this
        host owns and that are not in memory, because the answer to a claim was lost, are loaded.
        """
        known = list(self._runs.actors.values())
        owned = await self._directory.owned(self._host)
        for actor in known:
            here = self._runs.is_current(actor) and actor.ready and actor.is_idle()
            if here and owned.get(actor.uid) != actor.epoch:
                self._background.spawn(self._reload(actor, None, Outcome.STALE_EPOCH))
        for uid in owned:
            await self._turns.share()
            if uid not in self._runs.actors and uid not in self._claiming and uid not in self._new_children.waiting:
                await self._loader.load(uid)
