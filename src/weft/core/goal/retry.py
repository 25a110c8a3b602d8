"""Retry a failed goal run: reopen every step that did not complete. Pure.

A step that has work items keeps its inputs and the results of its items, and repeats the others. Any other step binds
its inputs again. A step whose predicate was false stays skipped. What nothing needs is skipped again before any work is
dispatched.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.definitions import GoalWay, WorkflowWay
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.plan import GoalPlan
from weft.core.goal.state import GoalState, StepRun, copy_state
from weft.core.goal.turn import PREDICATE_FALSE
from weft.core.run import lifecycle, undo
from weft.core.run.repeats import child_in_doubt, is_in_doubt
from weft.errors import NotFound, Refused


def decide_retry(state: GoalState, plan: GoalPlan | None, command: c.RetryRun) -> Sequence[e.AnyEvent]:
    """Reopen the steps that ended because of the failure. ``start`` must be one of them, or one of its items.

    Raises:
        Refused: the run never began, ``start`` completed, or a child run would be repeated whose outcome is not known.
        NotFound: there is no step ``start`` in the plan.
        RunUndone: completed work of a step that the run still needs has been undone.
    """
    if plan is None:
        raise Refused(f"{state.run_id} was refused before it began.", hint=lifecycle.new_run_hint(state))
    steps = closed_steps(state)
    if command.start:
        _check_closed(state, command.start.partition("[")[0], steps)
    children = [step for step in steps if isinstance(plan.steps[step].way, WorkflowWay | GoalWay)]
    doubtful = [step for step in children if is_in_doubt(state.steps[step].failure) and step not in command.approved]
    if doubtful and not command.force:
        raise child_in_doubt(state, doubtful)
    if any(_was_undone(state, step) for step in _needed_closed_steps(state, plan, steps)):
        raise undo.already_undone(state)
    return (e.RunRetried(steps=steps, earlier=_repeated_work(state, steps)),)


def _check_closed(state: GoalState, step: str, closed: Sequence[str]) -> None:
    """Refuse a step that the failure did not close, because facts that were read never change."""
    if step not in state.steps:
        hint = f"To see its steps: weft show {state.run_id}"
        raise NotFound(f"{state.run_id} has no step {step[:60]!r}.", hint=hint)
    if step not in closed:
        message = f"{step} was not closed by the failure of {state.run_id}, so the run cannot be retried from there."
        raise Refused(message, hint=f"Go on with a copy from before it: weft fork {state.run_id} --before {step}")


def _repeated_work(state: GoalState, steps: Sequence[str]) -> dict[str, e.Earlier]:
    """Return the items that are repeated. A reopened step keeps its inputs, so they are the same work.

    A step that was replaced begins anew, with the next number in its keys.
    """
    found: dict[str, e.Earlier] = {}
    for step in steps:
        run = state.steps[step]
        anew = run.replaced is not None and run.items > 0
        places = (
            _places_of_step(step, run)
            if anew
            else [_item_place(step, run, index) for index in (*run.ended, *run.again)]
        )
        found |= {place: e.Earlier(place, state.renewed.get(place, 0) + anew) for place in places}
    return found


def _item_place(step: str, run: StepRun, index: int) -> str:
    return f"{step}[{index}]" if run.fan_out else step


def _places_of_step(step: str, run: StepRun) -> list[str]:
    """Return the places at which a step may have dispatched work, also if it has items only in one definition."""
    return [step, *(f"{step}[{index}]" for index in range(run.index_next))]


def closed_steps(state: GoalState) -> list[str]:
    """Return the steps that a retry reopens."""
    return [step for step, run in state.steps.items() if run.status != "completed" and not _stays_skipped(run)]


def _stays_skipped(run: StepRun) -> bool:
    return run.status == "skipped" and run.why == PREDICATE_FALSE and run.replaced is None


def _needed_closed_steps(state: GoalState, plan: GoalPlan, closed: Sequence[str]) -> list[str]:
    """Return the closed steps that a goal needs once all of them are open."""
    trial = copy_state(state)
    for step in closed:
        reopen(trial, step)
    flow = NeedCounts(plan, trial)
    return [step for step in closed if flow.steps[step].needed and trial.steps[step].items]


def _was_undone(state: GoalState, step: str) -> bool:
    """Return whether an item of a step was undone since the step began."""
    known = state.steps[step].renewed
    places = (place for place in state.renewed if place.partition("[")[0] == step)
    return any(state.renewed[place] > known.get(place, 0) for place in places)


def reopen(state: GoalState, step: str) -> None:
    """Reset a step as if it had not failed. Optional needs that were decided stay decided."""
    run = state.steps[step]
    if run.replaced is not None:
        run = state.steps[step] = _begin_anew(state, step, run)
    run.why, run.failure, run.lost = "", None, ""
    run.open, run.due, run.active, run.windows = {}, [], 0, {}
    if not run.items:
        run.status = "pending"
        return
    run.status = "active"
    run.again, run.ended = sorted({*run.ended, *run.again}), []
    run.left = run.items - run.index_next + len(run.again)


def _begin_anew(state: GoalState, step: str, run: StepRun) -> StepRun:
    """Return a replaced step without its items. What it dispatches is new work, with new keys."""
    places = _places_of_step(step, run)
    if run.items:
        for place in places:
            state.renewed[place] = state.renewed.get(place, 0) + 1
    renewed = {place: state.renewed[place] for place in places if place in state.renewed}
    return StepRun(decided=run.decided, renewed=renewed)
