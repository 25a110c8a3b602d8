"""Translate goal events to the seed names, which speak of flows, work and attributes. Pure.

The log uses the same events for all styles where they mean the same. This table is for readers who know the seed names.
"""

from __future__ import annotations

from weft.core import events as e
from weft.core.unfold import ViewEvent

_NAMES: dict[type, tuple[str, ...]] = {
    e.RunStarted: ("flow_started",),
    e.RunCompleted: ("flow_completed",),
    e.RunFailedEvent: ("flow_failed",),
    e.RunCancelledEvent: ("flow_cancelled",),
    e.StepStarted: ("step_started",),
    e.StepCompleted: ("step_completed",),
    e.StepFailedEvent: ("step_failed",),
    e.StepSkipped: ("step_skipped",),
    e.AttributeSet: ("attribute_set",),
    e.DeadlineSet: ("deadline_set",),
    e.DeadlinePassed: ("deadline_passed",),
    e.TaskScheduled: ("work_started",),
    e.AskOpened: ("work_started",),
    e.ChildStarted: ("work_started",),
    e.WorkResumed: ("work_started",),
    e.TaskSucceeded: ("work_succeeded",),
    e.WorkSkipped: ("work_skipped",),
    e.WaitTimedOut: ("work_failed",),
    e.UndoScheduled: ("comp_started",),
}


def seed_names(event: ViewEvent) -> tuple[str, ...]:
    """Return the seed names of an event: one, two (a failed attempt that is retried), or none."""
    match event:
        case e.TaskFailed(retry_at=retry_at):
            return ("work_not_completed", "retry_scheduled") if retry_at else ("work_failed",)
        case e.ChildEnded(status=status):
            return ("work_succeeded",) if status == "completed" else ("work_failed",)
        case e.AskAnswered(decided=decided):
            return ("work_succeeded",) if decided else ()
    return _NAMES.get(type(event), ())
