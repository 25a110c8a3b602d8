"""The fast path of runs without code: a task succeeds, and the next task begins.

Nearly every step takes this path. The style decides, evolves and derives the effects in one call, instead of one after
the other by the tables. If a case is not the common one, the fast path changes nothing and returns None.
"""

from __future__ import annotations

import msgspec

from weft.core.commands import ReportTaskSucceeded
from weft.core.effects import PerformTask
from weft.core.events import AnyEvent
from weft.core.run.state import OpenTask, State


class Continuation(msgspec.Struct, eq=False):
    """The events that were recorded on the fast path, and their effects."""

    events: list[AnyEvent]
    effects: list[PerformTask]
    rests: bool
    """Whether ``follow`` has no events now."""


def succeeded_task(state: State, report: ReportTaskSucceeded) -> OpenTask | None:
    """Return the task of a report, if the delivery is current and only the task's own step depends on its end."""
    task = state.tasks.get(report.task)
    if task is None or task.attempt != report.attempt or task.delivery != report.delivery:
        return None
    if task.undo is not None or task.undo_of or task.policy.deadline_ms:
        return None
    if state.accounted or report.spent is not None:
        return None
    if state.ended or state.reversals or state.gone or state.gone_children or state.fork is not None or state.asked:
        return None  # the tables handle work that was dropped, removed or may be held back
    return task
