"""A line in the log of the server whenever a person may have to look at a run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from weft.core import events as e
from weft.core.durations import format_ms

if TYPE_CHECKING:
    from weft.runtime.engine import Engine
    from weft.runtime.run.actor import Actor
    from weft.runtime.run.draft import Draft

log = logging.getLogger("weft.runs")

_KINDS = (b'{"kind":"task_failed"', b'{"kind":"run_failed"', b'{"kind":"run_held"')
_UNDO = "!undo"


class RunLogs:
    """Logs failed runs, retried steps, held runs and failed undos, once they are durable."""

    def attach(self, engine: Engine) -> None:
        """Log what is committed by this engine from now on."""
        engine.commits.observe(self._observed)

    def _observed(self, actor: Actor, draft: Draft) -> None:
        for stored in draft.events:
            if stored.body.startswith(_KINDS):
                _log(actor.id, e.decode(stored.body), stored.at)


def _log(run: str, event: e.AnyEvent, at: int) -> None:
    extra = {"run": run}
    match event:
        case e.RunFailed(failure=failure):
            cause = f", caused by {failure.cause}" if failure.cause else ""
            log.error("weft: %s failed: %s%s", run, failure.brief(), cause, extra=extra)
        case e.RunHeld(code=code, message=message):
            log.error("weft: %s is held (%s): %s", run, code, message, extra=extra)
        case e.TaskFailed(failure=failure, attempt=attempt, retry_at=retry_at) if retry_at:
            log.warning(
                "weft: %s: attempt %d of %s failed, the next one is in %s: %s",
                run,
                attempt,
                failure.location or failure.step,
                format_ms(max(0, retry_at - at)),
                failure.brief(),
                extra={**extra, "step": failure.step},
            )
        case e.TaskFailed(failure=failure) if failure.location.endswith(_UNDO):
            undone = failure.location.removesuffix(_UNDO)
            extra["step"] = failure.step
            log.error("weft: %s: %s could not be undone: %s", run, undone, failure.brief(), extra=extra)
