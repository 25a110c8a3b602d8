"""Decide whether a new run is accepted, and whether it begins at once.

New runs are refused while accepted work waits for too long.

While many starts are in progress, new runs are only written to the store, which is all that their callers wait for.
They begin when the burst is over, or at the latest after the delay in their rows. So nothing is lost if the host dies
in between.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

from weft.core.ids import RunUid
from weft.runtime.local import LocalRuns
from weft.runtime.service import RunService
from weft.runtime.status import HostStatus
from weft.server.limits import busy_refusal

MEASURE_SECONDS = 1.0
RETRY_SECONDS_MAX = 60
STARTS_MAX = 16
"""More simultaneous starts than this are a burst."""
BURST_DELAY_MS = 5_000
CALM_SECONDS = 0.02
"""A burst is over when there were fewer starts for this long."""
RUNS_PER_ROUND = 50


class Admission:
    """Refuses new runs while the backlog is old, and delays them during a burst."""

    def __init__(self, backlog_seconds_max: float) -> None:
        self._age_max = backlog_seconds_max
        self._measured_at = -math.inf
        self._age = 0.0
        self._starts = 0
        self._last_burst = 0.0
        self._runs: RunService | None = None
        self._delayed: deque[tuple[float, RunUid]] = deque()
        self._waiting = False
        """Whether a task waits for the burst to end."""

    def attach(self, runs: RunService) -> None:
        """Admit runs to this host from now on."""
        self._runs = runs

    # --- the backlog ----------------------------------------------------------------------------------------------

    async def backlog_seconds(self) -> float:
        """Return the age of the oldest work that waits for a slot or for memory. Measured at most once a second."""
        now = time.monotonic()
        work = self._runs.work if self._runs is not None else None
        if work is not None and now - self._measured_at >= MEASURE_SECONDS:
            self._measured_at = now
            self._age = await work.backlog_ms() / 1000
        return self._age

    async def admit(self) -> None:
        """Refuse a new run while the backlog is old. Raises RequestRefused."""
        age = await self.backlog_seconds()
        if age > self._age_max:
            raise busy_refusal(
                f"The oldest work has waited for {age:.0f} s. New runs are accepted again below {self._age_max:g} s.",
                min(RETRY_SECONDS_MAX, math.ceil(age - self._age_max) + 1),
            )

    # --- bursts ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> int:
        """Begin a start. Returns how long its run is delayed, in milliseconds."""
        self._starts += 1
        return BURST_DELAY_MS if self._starts > STARTS_MAX else 0

    def __exit__(self, *_: object) -> None:
        if self._starts > STARTS_MAX:
            self._last_burst = time.monotonic()
        self._starts -= 1

    def begin_later(self, uid: RunUid) -> None:
        """Begin a delayed run when the burst is over. Its row is already durable."""
        now = time.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            self._delayed.popleft()  # its delay is over, so any host may claim it
        self._delayed.append((now + BURST_DELAY_MS / 1000, uid))
        runs = self._runs
        if not self._waiting and runs is not None and runs.local is not None:
            self._waiting = True
            runs.local.spawn(self._begin_delayed(runs.local, runs.status))  # may fail: their rows say when they begin

    async def _begin_delayed(self, runs: LocalRuns, status: HostStatus) -> None:
        try:
            while self._delayed and not status.closing:
                if self._starts > STARTS_MAX or time.monotonic() - self._last_burst < CALM_SECONDS:
                    await asyncio.sleep(CALM_SECONDS)
                    continue
                uids = [self._delayed.popleft()[1] for _ in range(min(RUNS_PER_ROUND, len(self._delayed)))]
                await runs.claim_new(uids)
                await asyncio.sleep(0)
        finally:
            self._waiting = False
