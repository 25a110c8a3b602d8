"""Run the duties of a host: each at its interval, and at once when something wakes it.

Polling alone is sufficient; a wake-up only makes a duty run sooner. A wake-up has a reason (``MAIL``, ``RUNS``,
``TASKS``), so that only the duties for this reason run. What other processes wrote is found by asking the store
(``look``), whose answer names the reasons (``STORE``, ``READY``). It is asked in every poll, and at once after a hint
(``HINT``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from weft.errors import StoreError
from weft.runtime.background import BackgroundLoop, Failed
from weft.runtime.throttled_log import ThrottledLog

log = logging.getLogger("weft")

T = TypeVar("T")

STORE = "store"
"""Another process wrote to the store."""
READY = "ready"
"""Another process left a run that may be claimed now."""
MAIL = "mail"
"""Mail was sent."""
RUNS = "runs"
"""A run was created, or has left a host."""
TASKS = "tasks"
"""A task was offered to other hosts, or a slot became free."""
HINT = "hint"
"""Another process may have written to the store, which is asked about it."""
MEMORY = "memory"
"""A run waits for room in memory."""

FAILED_SECONDS = 0.5
"""How long to wait after the store did not answer."""


WAKE_SECONDS_MIN = 0.05
"""How long to wait for a run that is due but could not be claimed: memory is full, or another host claims it."""


def seconds_until(times: Iterable[int | None], now: int, most: float) -> float:
    """Return the seconds until the first of these times, and no more than ``most``."""
    known = [at for at in times if at is not None]
    return min(most, max(WAKE_SECONDS_MIN, (min(known) - now) / 1000)) if known else most


class Wakeups:
    """The reasons to run duties that came up since they last ran."""

    def __init__(self) -> None:
        # Reasons that come up while the host starts must not be lost.
        self._woken: set[str] = set()
        self._event = asyncio.Event()

    def wake(self, *reasons: str) -> None:
        """Run the duties for these reasons now."""
        self._woken.update(reasons)
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Wait for a wake-up, at most this long."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return

    def take(self) -> set[str]:
        """Return all reasons and clear them."""
        self._event.clear()
        woken, self._woken = self._woken, set()
        return woken


@dataclass(frozen=True, slots=True)
class Duty:
    """One recurring task of a host."""

    name: str
    every: float
    """Seconds between two rounds; 0 to run in every round of the scheduler."""
    wakes_on: frozenset[str]
    run: Callable[[], Awaitable[object]]
    is_due: Callable[[], bool] = lambda: False
    """Whether the duty must run now, whatever the time."""


class Scheduler:
    """Runs the duties in the order of the table."""

    def __init__(
        self,
        duties: Sequence[Duty],
        wakeups: Wakeups,
        *,
        look: Callable[[], Awaitable[Collection[str]]],
        pause: Callable[[], float],
        monotonic: Callable[[], float],
        throttled_log: ThrottledLog,
        failed: Failed,
    ) -> None:
        """``look`` returns why duties must run after writes of other processes; ``pause`` the seconds until a round."""
        self._duties = duties
        self._wakeups = wakeups
        self._look = look
        self._pause = pause
        self._monotonic = monotonic
        self._throttled_log = throttled_log
        self._next: dict[str, float] = {}
        self._loop = BackgroundLoop("the scheduler of duties", self._run_rounds, failed)

    def start(self) -> None:
        self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def _run_rounds(self) -> None:
        while True:
            await self._wakeups.wait(self._pause())
            await self.run_round(self._wakeups.take())

    async def run_round(self, woken: Collection[str]) -> None:
        """Run every duty that is due or was woken."""
        left: list[Duty] = []
        try:
            reasons = set(woken)
            if not reasons or HINT in reasons:
                reasons.update(await self._log_failure_of("look", self._look) or ())
            left = self._due_duties(reasons)
            while left:
                self._next[left[0].name] = self._monotonic() + left[0].every
                await self._log_failure_of(left[0].name, left[0].run)
                del left[0]
        except StoreError as error:
            self._throttled_log.warn("weft: the store does not answer (%s); trying again", error)
            self._next.update((duty.name, 0.0) for duty in left)
            await asyncio.sleep(FAILED_SECONDS)

    def _due_duties(self, reasons: set[str]) -> list[Duty]:
        now = self._monotonic()
        return [
            duty
            for duty in self._duties
            if reasons & duty.wakes_on or now >= self._next.get(duty.name, 0.0) or duty.is_due()
        ]

    async def _log_failure_of(self, name: str, work: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await work()
        except StoreError:
            raise
        except Exception:
            # The other duties must continue, or runs would wait for their mail forever.
            log.exception("weft: the duty %s failed", name)
            await asyncio.sleep(FAILED_SECONDS)
            return None
