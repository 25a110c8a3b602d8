"""Coroutines that run in the background: reading blobs, offering tasks, delivering results.

A failure is never only logged. Either the work is repeated elsewhere (``may_fail``), or the run that it was for is held
for a person, or the host ends and the next host derives from the log what is left to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from weft.errors import StoreError
from weft.runtime.status import HostStatus
from weft.steps.raised import ends_host
from weft.steps.tracebacks import loggable_error

log = logging.getLogger("weft")

T = TypeVar("T")


class OwnerRun(Protocol):
    """A run that a background task belongs to."""

    @property
    def id(self) -> str: ...

    def give_up(self, error: BaseException) -> None:
        """Hold the run for a person."""
        ...


class BackgroundTasks:
    """Runs coroutines in the background on the loop of the host."""

    def __init__(self, status: HostStatus, is_current: Callable[[Any], bool]) -> None:
        """``is_current`` returns whether this actor of a run is still the one in memory."""
        self._status = status
        self._is_current = is_current
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Use the running loop."""
        self._loop = asyncio.get_running_loop()

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        """Call back at the next turn of the host's loop, even if called from the private loop of a run."""
        self._loop.call_soon(callback, *args)

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        """Call back after this time, and not before the next turn of the host's loop."""
        self._loop.call_later(seconds, callback, *args)

    def spawn(
        self, coro: Coroutine[Any, Any, T], owner: OwnerRun | None = None, *, may_fail: bool = False
    ) -> asyncio.Task[T]:
        """Run a coroutine in the background. If it fails, its run (``owner``) or the host stops.

        ``may_fail``: the work is repeated elsewhere, or is not necessary. The failure is only logged.
        """
        task = self._loop.create_task(coro)
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_done, owner, may_fail))
        return task

    def cancel(self) -> None:
        """Cancel all tasks, because the host stops. The next host does the remaining work."""
        for task in list(self._tasks):
            task.cancel()

    def _on_done(self, owner: OwnerRun | None, may_fail: bool, task: asyncio.Task[Any]) -> None:  # noqa: FBT001
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None or ends_host(error):
            return
        if not self._status.running:
            if not isinstance(error, StoreError):
                log.error("weft: an internal task failed while the host stopped", exc_info=loggable_error(error))
        elif may_fail:
            log.warning("weft: an internal task failed; it is repeated if necessary", exc_info=loggable_error(error))
        elif owner is None:
            self._status.fail("a background task", error)
        elif self._is_current(owner):
            owner.give_up(error)
        else:
            # Its run was reloaded, or is on another host, and derives this work again there.
            log.error("weft: an internal task of %s failed", owner.id, exc_info=loggable_error(error))
