"""The loops that a host needs: committing, duties, heartbeats. A loop that ends is restarted, or ends its host.

Rules: docs/internals/engine.md#rule-30.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

log = logging.getLogger("weft")

RESTARTS_MAX = 5
RESTARTS_SECONDS = 60.0
"""After this many restarts within this time, the next failure ends the host."""
PAUSE_SECONDS = 0.1

Failed = Callable[[str, BaseException], None]
End = Callable[[asyncio.Task[None]], Awaitable[None]]


async def cancel_once(task: asyncio.Task[None]) -> None:
    """Cancel a task, and wait until it has ended."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class BackgroundLoop:
    """A coroutine that must not end while its host runs."""

    def __init__(
        self, name: str, body: Callable[[], Coroutine[Any, Any, None]], failed: Failed, *, end: End = cancel_once
    ) -> None:
        """``failed`` is called when the loop keeps ending, and ``end`` ends its task when it is stopped."""
        self._name = name
        self._body = body
        self._failed = failed
        self._end = end
        self.wanted = False
        """Whether the loop was started and not stopped."""
        self._task: asyncio.Task[None] | None = None
        self._host: asyncio.Task[Any] | None = None
        """The task that first started this loop: when it ends, the event loop is shutting down."""
        self._restarted: deque[float] = deque(maxlen=RESTARTS_MAX)
        self._restart: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Run the coroutine in the background."""
        self.wanted = True
        self._restart = None
        self._host = self._host or asyncio.current_task()
        self._task = asyncio.get_running_loop().create_task(self._body())
        self._task.add_done_callback(self._on_ended)

    async def stop(self) -> None:
        """Cancel the coroutine and wait until it has ended."""
        self.wanted = False
        task, self._task = self._task, None
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None
        if task is not None:
            await self._end(task)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        if not self.wanted:
            return
        error: BaseException
        if task.cancelled() and self._host is not None and self._host.done():
            return  # the event loop is closing; a host that is only being cancelled still drains, and needs this loop
        if task.cancelled():
            error = asyncio.CancelledError(f"{self._name} was cancelled")
        else:
            error = task.exception() or RuntimeError(f"{self._name} returned")
        loop = asyncio.get_running_loop()
        now = loop.time()
        if len(self._restarted) == RESTARTS_MAX and now - self._restarted[0] < RESTARTS_SECONDS:
            self._failed(self._name, error)
            return
        log.error("weft: %s ended and is restarted", self._name, exc_info=error)
        self._restarted.append(now)
        self._restart = loop.call_later(PAUSE_SECONDS, self.start)
