"""Give up waiting for a store that answers no caller. A long burst of work is not a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START_SECONDS = 3.5
"""A start or command fails when the store has answered no caller for about this long."""
DELAY_SECONDS_MAX = 0.1
"""If a check is delayed by more than this, the loop was busy, and answers may not have been processed yet."""
RECHECK_SECONDS = 0.5


class StoreTimeout:
    """Ends waits for a store that does not answer. One timer serves all waits, as every start and command waits."""

    def __init__(self, answered_at: Callable[[], float]) -> None:
        """``answered_at`` returns when the store last answered any caller, by the loop's clock."""
        self._answered_at = answered_at
        self._waiting: dict[asyncio.Task[Any], float] = {}
        """When each wait began, oldest first."""
        self._given_up: set[asyncio.Task[Any]] = set()
        self._timer_loop: asyncio.AbstractEventLoop | None = None
        """The loop that has the timer, if there is one."""
        self._expired_at = 0.0
        """When a wait was first found to be over. It gets extra time, because the loop itself may have been blocked."""

    async def wait_for(self, work: Coroutine[Any, Any, T], error: Callable[[], Exception] = TimeoutError) -> T:
        """Wait for a coroutine. Raises an error when the store has answered no caller for ``START_SECONDS``."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        if task in self._waiting:
            return await work  # part of another wait
        since = self._waiting[task] = loop.time()
        if self._timer_loop is not loop:
            self._check_at(loop, since + START_SECONDS)
        cancelling = task.cancelling()
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._given_up and task.uncancel() <= cancelling:
                raise error() from None
            raise
        finally:
            self._waiting.pop(task, None)
            self._given_up.discard(task)

    def _check_at(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._timer_loop = loop
        loop.call_at(due, self._end_overdue_waits, loop, due)

    def _end_overdue_waits(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """End the waits that are over, and check again when the next one may be."""
        self._timer_loop = None
        now = max(due, loop.time())
        if self._waiting and now - due > DELAY_SECONDS_MAX:
            self._check_at(loop, now + RECHECK_SECONDS)
            return
        answered_at = self._answered_at()
        for task, since in list(self._waiting.items()):
            ends = max(since, answered_at) + START_SECONDS
            if ends > now:
                self._expired_at = 0.0
                self._check_at(loop, ends)
                return
            if not self._expired_at:
                self._expired_at = now
                self._check_at(loop, now + RECHECK_SECONDS)
                return
            del self._waiting[task]
            self._given_up.add(task)
            task.cancel()
        self._expired_at = 0.0
