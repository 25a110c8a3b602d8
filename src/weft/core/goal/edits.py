"""Edit a fork of a goal run before it goes on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.goal.inputs import given_type_error, given_values
from weft.core.goal.plan import GoalPlan
from weft.core.goal.state import GoalState
from weft.core.run.env import Env
from weft.core.run.fork import bad_edit, never_reached, settable_now_hint


def decide_edit(plan: GoalPlan | None, state: GoalState, command: c.EditRun, env: Env) -> Sequence[e.AnyEvent]:
    """Return the edits of a fork. Facts can be given until the first step begins. Raises Refused, with all wrong."""
    assert plan is not None, "a fork has the plan of its original"
    wrong = [problem for place in command.results if (problem := _result_error(state, place, command))]
    settable = (step for step in state.steps if not _result_error(state, step, command))
    lines = [settable_now_hint(settable)] if wrong else []
    if command.state:
        wrong.append("a goal run has no state; --given changes its facts")
    if bytes(command.input):
        wrong += _given_errors(plan, state, command, env)
    if wrong:
        if command.results:
            lines.append("--before STEP is a point at which the result of STEP can be set.")
        if any(name not in plan.given for name in command.given):
            lines.append(f"The plan takes {', '.join(plan.given) or 'nothing'}.")
        raise bad_edit(wrong, hint=" ".join(lines))
    edited = e.RunEdited(input=command.input, results=command.results, given=command.given, by=command.by)
    return (edited,)


def steps_begun(state: GoalState) -> list[str]:
    """Return the steps that have begun. From then on facts are given by a patch."""
    return [step for step, run in state.steps.items() if run.status != "pending"]


def _given_errors(plan: GoalPlan, state: GoalState, command: c.EditRun, env: Env) -> list[str]:
    begun = steps_begun(state)
    if begun:
        return [f"{begun[0]} has begun, and a fact that was read never changes: fork from the beginning"]
    wrong = [f"the plan does not take {name[:60]}" for name in command.given if name not in plan.given]
    plain = values.inline_json(bytes(command.input))
    problem = given_type_error(plan, given_values(plain), env) if plain is not None else None
    return [*wrong, problem] if problem else wrong


def _result_error(state: GoalState, place: str, command: c.EditRun) -> str:
    """Return why the result of a step cannot be set here, or nothing."""
    name = place.partition("[")[0]
    run = state.steps.get(name)
    if run is None:
        return f"the plan has no step {name[:60]}"
    if run.status not in ("pending", "active"):
        return f"{name} is {run.status} at this point"
    if run.open and not any(number in state.tasks for number in run.open.values()):
        return f"{name} performs no step; only the result of a step can be set"
    return never_reached(place, command) if place != name else ""
