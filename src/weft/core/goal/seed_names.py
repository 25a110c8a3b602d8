"""Events of a goal run under the names that the seed of goals uses. Pure.

In the common log a run's events are those of all styles where they mean the same; who knows flows, work and attributes
reads them here.
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
    """What the seed calls an event: one name, two (a failed attempt that is tried again), or none."""
    match event:
        case e.TaskFailed(retry_at=retry_at):
            return ("work_not_completed", "retry_scheduled") if retry_at else ("work_failed",)
        case e.ChildEnded(status=status):
            return ("work_succeeded",) if status == "completed" else ("work_failed",)
        case e.AskAnswered(decided=decided):
            return ("work_succeeded",) if decided else ()
    return _NAMES.get(type(event), ())
