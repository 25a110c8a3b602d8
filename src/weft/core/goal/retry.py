"""Retry a failed goal run: decide which steps are reopened, and what they keep. Pure.

Completed steps stay completed. A step that failed, or was skipped because of a failure, binds its inputs again if it
had not started. If it had started, it keeps its inputs and repeats only the items without a result. A step whose
predicate was false stays skipped, and so does a step that is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import events as e
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.plan import GoalPlan
from weft.core.goal.state import GoalState, StepRun, copy_state
from weft.core.goal.turn import PREDICATE_FALSE
from weft.core.run import lifecycle, undo
from weft.errors import Refused


def decide_retry(state: GoalState, plan: GoalPlan | None) -> Sequence[e.AnyEvent]:
    """Reopen the steps that ended because of the failure.

    Raises:
        Refused: the run never began.
        RunUndone: completed work of a step that would be reopened has been undone.
    """
    if plan is None:
        raise Refused(f"{state.run_id} was refused before it began.", hint=lifecycle.new_run_hint(state))
    steps = _needed(state, plan)
    if not {place.partition("[")[0] for place in state.renewed}.isdisjoint(steps):
        raise undo.already_undone(state)
    return (e.RunRetried(steps=steps),)


def _needed(state: GoalState, plan: GoalPlan) -> list[str]:
    """Return the steps that ended without completing and that a goal needs once all of them are open."""
    closed = [step for step, run in state.steps.items() if _may_open(run)]
    trial = copy_state(state)
    for step in closed:
        reopen(trial.steps[step])
    flow = NeedCounts(plan, trial)
    return [step for step in closed if flow.steps[step].needed]


def _may_open(run: StepRun) -> bool:
    return run.status == "failed" or (run.status == "skipped" and run.why != PREDICATE_FALSE)


def reopen(run: StepRun) -> None:
    """Reset a step as if it had not failed. Optional needs that were decided stay decided."""
    run.why, run.failure, run.lost = "", None, ""
    run.open, run.due, run.active, run.windows = {}, [], 0, {}
    if not run.items:
        run.status = "pending"
        return
    run.status = "active"
    run.left = run.items - run.index_next + len(run.ended)
    run.again, run.ended = sorted(run.ended), []
