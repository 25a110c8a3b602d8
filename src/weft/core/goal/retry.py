"""A failed goal run is tried again: which steps open anew, and what they keep. Pure.

What completed stays. A step that failed, or was skipped because of it, looks for its inputs anew if it never started;
one that had started goes on with the inputs it was bound to, and begins anew only those of its items that have no
result. A step whose predicate said no stays skipped, and so does one that nobody needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import events as e
from weft.core.goal.flow import NeedCounts
from weft.core.goal.plan import GoalPlan
from weft.core.goal.state import GoalState, StepRun, copied
from weft.core.goal.turn import PREDICATE_FALSE
from weft.core.run import lifecycle
from weft.errors import Refused


def decide_retry(state: GoalState, plan: GoalPlan | None) -> Sequence[e.AnyEvent]:
    """Open again what the failure has closed.

    Raises:
        Refused: it never began.
        RunUndone: completed work of a step that would go on was undone.
    """
    if plan is None:
        raise Refused(f"{state.run_id} was refused before it began.", hint=lifecycle.start_anew(state))
    steps = _needed(state, plan)
    if not {place.partition("[")[0] for place in state.renewed}.isdisjoint(steps):
        raise lifecycle.undone(state)
    return (e.RunRetried(steps=steps),)


def _needed(state: GoalState, plan: GoalPlan) -> list[str]:
    """Steps that are over without having completed, and that some goal needs once all of them are open."""
    closed = [step for step, run in state.steps.items() if _may_open(run)]
    trial = copied(state)
    for step in closed:
        reopen(trial.steps[step])
    flow = NeedCounts(plan, trial)
    return [step for step in closed if flow.steps[step].needed]


def _may_open(run: StepRun) -> bool:
    return run.status == "failed" or (run.status == "skipped" and run.why != PREDICATE_FALSE)


def reopen(run: StepRun) -> None:
    """The step is as if its failure had not been; optionals that were decided stay so."""
    run.why, run.failure, run.lost = "", None, ""
    run.open, run.due, run.active, run.windows = {}, [], 0, {}
    if not run.items:
        run.status = "pending"
        return
    run.status = "active"
    run.left = run.items - run.index_next + len(run.ended)
    run.again, run.ended = sorted(run.ended), []
