"""Keeps a WAL open for the host of this process: opens one, attaches runs to it, and opens another when it broke.

A WAL that broke is marked as drained when all tails are in the durable store, and not before; then the next one is
opened. So whoever takes over reads one WAL, and it has everything. Rules: docs/internals/hot-path.md#rule-16.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Final

from weft.core.ids import HostId
from weft.errors import StoreError
from weft.ports.boundary import boundary
from weft.ports.wal_server import WalBroken, WalServer
from weft.ports.wals import Wals
from weft.stores.hot.hot_lane import HotLane
from weft.stores.hot.owned_runs import OwnedRuns
from weft.stores.hot.recognition import RedisRecognition
from weft.stores.hot.through_lane import ThroughLane
from weft.stores.redis.task_end import end_tasks

log = logging.getLogger("weft")

RUNS_PER_ATTACH: Final = 1_000
TICK_SECONDS: Final = 1.0
"""How often to trim, to record the last entry, and to attach runs."""
FIRST_SECONDS: Final = 1.0
"""How long a host that joins waits for its first WAL. It works without one until then."""
CHECK_SECONDS: Final = 10.0
"""How often to ask the server whether it may still hold WALs: its settings can be changed while it runs."""
REMOVE_SECONDS: Final = 600.0
"""How often to look for WALs that were drained long ago."""
WALS_PER_REMOVAL: Final = 100
PAUSE_SECONDS_FIRST: Final = 0.1
PAUSE_SECONDS_MAX: Final = 2.0


class WalKeeper:
    """Keeps a WAL open for one host."""

    def __init__(
        self,
        wals: Wals,
        server: WalServer,
        hot: HotLane,
        through: ThroughLane,
        runs: OwnedRuns,
        *,
        living: Callable[[], Awaitable[Sequence[HostId]]],
    ) -> None:
        """``living`` returns the hosts that are alive."""
        self._wals = wals
        self._server = server
        self._hot = hot
        self._through = through
        self._runs = runs
        self._living = living
        self.recognition: RedisRecognition | None = None
        """Knows whether the server is the one of this deployment; None before a host has joined."""
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._tried = asyncio.Event()
        """Set after the first attempt to open a WAL."""
        self._unmarked: int | None = None
        """A WAL that is no longer written, and not marked as drained yet."""
        self._noted = 0
        self._removes_at = 0.0
        self._checks_at = 0.0
        self._tick_seconds = TICK_SECONDS
        hot.on_broken = self._on_broken
        through.wal_of_new = self.wal_of_new

    @property
    def host(self) -> HostId | None:
        """Return the host that has the WAL; None before one has joined."""
        return self._runs.host

    def wal_of_new(self) -> int | None:
        """Return the WAL that the row of a run names which is created now; None while that changes."""
        return self._hot.wal

    async def start(self, host: HostId, lease_seconds: float) -> None:
        """Open a WAL for a host that has joined. Only the first host of a process gets one."""
        if self._runs.host is not None:
            return
        self._runs.host = host
        self._tick_seconds = min(TICK_SECONDS, lease_seconds / 3)
        loop = asyncio.get_running_loop()
        self.recognition = RedisRecognition(self._server, self._wals, host, self._living, loop.time)
        self._task = loop.create_task(self._keep_forever(host, self.recognition))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._tried.wait(), FIRST_SECONDS)

    async def leave(self, host: HostId) -> None:
        """Drain everything, mark the WAL as drained and remove it. Raises the error of the durable store."""
        if self._runs.host != host:
            return
        await self.stop()
        wal = self._hot.wal if self._hot.wal is not None else self._unmarked
        self._hot.wal = None
        await self._through.flush()
        if wal is not None:
            await self._wals.mark_drained(wal)
            await self._remove_wal(wal)
        self._unmarked = self._runs.host = None
        self._runs.clear()

    async def stop(self) -> None:
        """Stop keeping a WAL. The one that is open stays as it is."""
        task, self._task = self._task, None
        if task is not None:
            await end_tasks(task)

    async def _keep_forever(self, host: HostId, recognition: RedisRecognition) -> None:
        pause = PAUSE_SECONDS_FIRST
        while True:
            try:
                if self._hot.wal is None:
                    await self._open_wal(host, recognition)
                if self._hot.wal is not None:
                    await self._look_after(self._hot.wal, host)
                    await self._check_server(self._hot.wal, recognition)
                    pause = PAUSE_SECONDS_FIRST
            except (StoreError, WalBroken) as error:
                log.debug("weft: the hot path is off for now: %s", error)
            except Exception:
                log.exception("weft: the hot path is off for now")
            self._tried.set()
            if self._hot.wal is None:
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
                continue
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._tick_seconds)

    def _on_broken(self, wal: int) -> None:
        self._unmarked = wal
        self._changed.set()

    async def _open_wal(self, host: HostId, recognition: RedisRecognition) -> None:
        await self._close_last()
        redis = await recognition.recognise()
        if redis is None:
            return
        wal = await self._wals.open(host, redis)
        self._unmarked = wal  # nothing is in it, unless it is used below
        await self._server.begin(wal)
        self._unmarked, self._noted = None, 0
        self._hot.use(wal)

    async def _close_last(self) -> None:
        """Bring everything into the durable store, and mark the last WAL as drained."""
        wal = self._unmarked
        if wal is None:
            return
        await self._through.flush()
        boundary("wal.drained")
        await self._wals.mark_drained(wal)
        self._unmarked = None
        await self._remove_wal(wal)

    async def _remove_wal(self, wal: int) -> None:
        # What stays behind is removed with the other old ones.
        with contextlib.suppress(StoreError, WalBroken):
            await self._server.delete(wal)

    async def _look_after(self, wal: int, host: HostId) -> None:
        """Attach runs that are not attached yet, trim the WAL unless it is being written, and record its last entry."""
        while await self._attach_runs(wal, host):
            pass
        await self._hot.trim()
        if self._hot.last != self._noted:
            self._noted = self._hot.last
            if not await self._wals.note(wal, self._noted):
                self._hot.break_wal(wal, "another host has drained it")
        await self._remove_old()

    async def _check_server(self, wal: int | None, recognition: RedisRecognition) -> None:
        """Break the WAL if the server has begun to evict keys: it may drop what it has acknowledged."""
        now = asyncio.get_running_loop().time()
        if wal is None or now < self._checks_at:
            return
        self._checks_at = now + CHECK_SECONDS
        refusal = await recognition.refusal()
        if refusal:
            self._hot.break_wal(wal, refusal.rstrip("."))

    async def _remove_old(self) -> None:
        """Remove what is left of WALs that were drained long ago, also of hosts that died while Redis was away."""
        now = asyncio.get_running_loop().time()
        if now < self._removes_at:
            return
        self._removes_at = now + REMOVE_SECONDS
        while old := await self._wals.old(limit=WALS_PER_REMOVAL):
            for wal in old:
                await self._server.delete(wal)
            await self._wals.remove(old)

    async def _attach_runs(self, wal: int, host: HostId) -> bool:
        """Attach some runs to the WAL. Returns whether there were any to attach.

        Nothing of them may be under way, and all that they did must be in the durable store: who takes over reads only
        the WAL that the row names.
        """
        async with self._through.quiet():
            asked = [
                (uid, run)
                for uid, run in islice(self._runs.unattached(wal), RUNS_PER_ATTACH)
                if not self._through.has_tail(uid)
            ]
            if not asked:
                return False
            boundary("attach.before")
            attached = await self._wals.attach(wal, host, {uid: run.epoch for uid, run in asked})
            boundary("attach.after")
            self._runs.attach(wal, asked, attached)
        return True
