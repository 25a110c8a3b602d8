"""What a person can do so that a run goes on, as data."""

from __future__ import annotations

from weft.core.run.lifecycle import NEVER_BEGAN, UNDONE
from weft.observe.diagnosis import Diagnosis, PendingWait
from weft.observe.explanation import ExplainedAction


def wait_action(wait: PendingWait, diagnosis: Diagnosis) -> ExplainedAction | None:
    """Return what would end a wait; None if it ends by itself."""
    match wait.kind:
        case "step" if not wait.is_performed:
            return ExplainedAction(kind="start_worker", queue=wait.queue, workflow=diagnosis.workflow)
        case "ask":
            return ExplainedAction(kind="answer", approval=f"{diagnosis.run}:{wait.place}")
        case "message":
            return ExplainedAction(kind="send", names=wait.names)
        case "child":
            return ExplainedAction(kind="open", run=wait.run)
        case "patch":
            return ExplainedAction(kind="withdraw", number=wait.number)
    return None


def run_action(diagnosis: Diagnosis) -> ExplainedAction | None:
    """Return what would let the run as a whole go on; None if nothing is to be done, or nothing can be done."""
    is_hosted = diagnosis.is_hosted or diagnosis.is_offered
    if diagnosis.status in ("held", "paused"):
        return ExplainedAction(kind="resume")
    if diagnosis.status == "failed":
        notes = diagnosis.failure.attributes if diagnosis.failure is not None else {}
        is_final = diagnosis.run in (notes.get(NEVER_BEGAN), notes.get(UNDONE))
        return None if is_final else ExplainedAction(kind="retry")
    if diagnosis.start_wait is not None and diagnosis.start_wait.behind:
        return ExplainedAction(kind="open", run=diagnosis.start_wait.behind)
    if not diagnosis.is_over and not is_hosted and diagnosis.starts_at is None:
        return ExplainedAction(kind="start_worker", workflow=diagnosis.workflow)
    return None
