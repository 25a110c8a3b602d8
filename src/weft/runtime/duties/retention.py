"""Delete what is old in the background: one host at a time, in small writes, and paused while writes are slow."""

from __future__ import annotations

import asyncio
import logging

from weft.core.ids import HostId, Millis
from weft.ports.clock import Clock
from weft.ports.store import Store
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.retention import Collector, GcOrder, growth_sentence
from weft.runtime.retention_pace import Rest
from weft.runtime.retention_policy import RetentionPolicy

log = logging.getLogger("weft")

TURN_MS = 30_000
"""How long a host may delete before it asks again. Another host waits this long after it has died."""
SHARE = 3
"""Between two writes, the host waits this many times as long as the last one took."""
DAY_MS = 24 * 3600 * 1000


class _TurnLost(Exception):
    """Another host deletes now."""


class RetentionDuty:
    """Starts a pass over the store, unless one is running here or on another host."""

    def __init__(
        self, store: Store, clock: Clock, host: HostId, background: BackgroundTasks, policy: RetentionPolicy
    ) -> None:
        self._store = store
        self._clock = clock
        self._host = host
        self._background = background
        self._policy = policy
        self._collector = Collector(store, clock, pause=self._wait_before_write)
        self._pass: asyncio.Task[None] | None = None
        self._is_first = True
        self._rest = Rest(clock, SHARE)
        self._asked_at = 0.0
        self._told_ms: Millis | None = None

    async def run(self) -> None:
        """Start a pass. The first call does nothing, because a host that has just started has more urgent work."""
        if self._is_first:
            self._is_first = False
        elif self._pass is None or self._pass.done():
            self._pass = self._background.spawn(self._run_pass(), may_fail=True)

    async def _run_pass(self) -> None:
        self._rest.begin()
        try:
            await self._ask_turn()
            if not self._policy.is_set:
                await self._collector.clear()
                await self._tell_growth()
                return
            report = await self._collector.collect(GcOrder(policy=self._policy, reason="retention"))
        except _TurnLost:
            return
        if report.trees or report.chunks or report.blobs or report.versions:
            log.info(
                "weft: retention deleted %d runs in %d trees, %d chunks of output, %d blobs and %d versions",
                report.runs,
                report.trees,
                report.chunks,
                report.blobs,
                report.versions,
            )

    async def _wait_before_write(self) -> None:
        """Wait before a write, as long as the last one suggests. Raises _TurnLost."""
        await self._rest.take()
        if (self._clock.monotonic() - self._asked_at) * 1000 > TURN_MS / 3:
            await self._ask_turn()

    async def _ask_turn(self) -> None:
        self._asked_at = self._clock.monotonic()
        if not await self._store.retention.take_turn(self._host, now=self._clock.now_ms(), lease_ms=TURN_MS):
            raise _TurnLost

    async def _tell_growth(self) -> None:
        """Log once a day how fast the store grows, because nothing is ever deleted from it."""
        now = self._clock.now_ms()
        if self._told_ms is not None and now - self._told_ms < DAY_MS:
            return
        self._told_ms = now
        size = await self._store.retention.size(since=Millis(now - DAY_MS))
        if size.recent:
            log.info("weft: %s", growth_sentence(size))
