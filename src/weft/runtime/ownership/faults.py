"""Set aside a run that cannot be written or read: it is held for a person, and other runs continue."""

from __future__ import annotations

import logging

from weft.core.ids import RunUid
from weft.errors import Corrupt, WeftError
from weft.ports.store import RunLog
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.runs import RunTable
from weft.runtime.worker.step_worker import StepWorker
from weft.steps.failures import text_of

log = logging.getLogger("weft")

HELD = "held"
"""The status of a run that waits until a person resumes it."""


class FaultyRuns:
    """Marks runs that cannot continue."""

    def __init__(self, runs: RunTable, log: RunLog, worker: StepWorker, retry: RetryUntilAvailable) -> None:
        self._runs = runs
        self._log = log
        self._worker = worker
        self._retry_until_available = retry

    async def mark(self, uid: RunUid, run_id: str, reason: str) -> None:
        """Record on the row of a run why it cannot continue."""
        log.error("weft: %s is set aside: %s", run_id, reason)
        await self._retry_until_available(lambda: self._log.mark_fault(uid, reason, status=HELD))

    async def set_aside(self, actor: Actor, error: BaseException) -> None:
        """Remove a run that cannot continue from memory, and answer all callers that wait for it."""
        reason = error if isinstance(error, WeftError) else Corrupt(f"{actor.id} cannot continue: {text_of(error)}.")
        pending = actor.unanswered()
        self._runs.remove(actor)
        self._worker.stop_all(actor.uid)
        await self.mark(actor.uid, actor.id, reason.message)
        for posted in pending:
            if posted.reply is not None:
                posted.reply(reason)
