"""What an engine does beside the turns of its runs: read blobs, offer tasks, deliver results.

Each of these is a duty. One that fails is done again by others (``may_fail``), or the run that it is for stands still
for a person, or the host ends and the next one derives from the log what is left to do. It is never only logged.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from weft.errors import StoreError
from weft.steps.raised import ends_host
from weft.steps.tracebacks import loggable

if TYPE_CHECKING:
    from weft.runtime.actor import Actor
    from weft.runtime.engine import Engine

log = logging.getLogger("weft")


class Asides:
    """See the module."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, task: asyncio.Task[Any], of: Actor | None, *, may_fail: bool) -> None:
        """Look after a task."""
        self._tasks.add(task)
        task.add_done_callback(partial(self._done, of, may_fail))

    def cancel(self) -> None:
        """The host stops: whoever comes next does what is left."""
        for task in list(self._tasks):
            task.cancel()

    def _done(self, of: Actor | None, may_fail: bool, task: asyncio.Task[Any]) -> None:  # noqa: FBT001
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None or ends_host(error):
            return
        engine = self._engine
        if not engine.running:
            if not isinstance(error, StoreError):
                log.error("weft: an internal task failed while the host stopped", exc_info=loggable(error))
        elif may_fail:
            log.warning("weft: an internal task failed; it is done again if need be", exc_info=loggable(error))
        elif of is None:
            engine.fail("a task of the engine", error)
        elif engine.actors.get(of.uid) is of:
            of.give_up(error)
        else:
            # Its run was read again, or is elsewhere, and what this was for is derived anew there.
            log.error("weft: an internal task of %s failed", of.id, exc_info=loggable(error))
