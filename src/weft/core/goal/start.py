"""Start a goal run with the plan from the command, or with a plan made here. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.inputs import given_type_error, given_values
from weft.core.goal.plan import check_complete, decode_plan, encode_plan
from weft.core.goal.scripts import HostedGoals
from weft.core.goal.state import GoalState
from weft.core.run import lifecycle
from weft.core.run.env import Env
from weft.core.values import is_ref, parse_ref, unseal
from weft.errors import BadPlan, BadValue, Failure, UsageError


def decide_goal_start(program: HostedGoals, state: GoalState, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
    """Return the first events of a run. Raises BadPlan, BadValue."""
    if state.started:
        return ()
    if not isinstance(command, c.StartGoal) or (not bytes(command.plan) and not command.refused):
        if command.refused:
            return lifecycle.decide_start(state, command, env.now)
        command = _add_plan(program, command, env)
    command = msgspec.structs.replace(command, style="goal")
    started = lifecycle.decide_start(state, command, env.now)
    if command.refused:
        return started
    try:
        _check_start(command, env)
    except UsageError as error:
        if command.parent is None:
            raise
        # A refused start becomes a failed child, so that the parent is notified.
        failure = Failure(type=type(error).__name__, message=str(error), code=error.code)
        return (
            *started,
            e.RunFailedEvent(failure=lifecycle.mark_never_began(failure, command.run_id), never_begun=True),
        )
    return (*started, e.GoalPlanned(plan=command.plan))


def _add_plan(program: HostedGoals, command: c.StartRun, env: Env) -> c.StartGoal:
    """Add a plan to a start command that came without one. Raises BadPlan."""
    stored = bytes(command.input)
    body = env.blob(parse_ref(stored).digest) if is_ref(stored) else unseal(stored)
    goals = command.goals if isinstance(command, c.StartGoal) else ()
    plan = program.plan(goals, list(given_values(body))) if body is not None else None
    if plan is None:
        raise BadPlan(
            f"{command.run_id} is a goal run without a plan.",
            hint="Name a goal, or start the run with a plan.",
            code="goal.no_goal",
        )
    fields = {field: getattr(command, field) for field in c.StartRun.__struct_fields__}
    return c.StartGoal(**fields, plan=msgspec.Raw(encode_plan(plan)))


def _check_start(command: c.StartGoal, env: Env) -> None:
    try:
        plan = decode_plan(command.plan)
    except msgspec.DecodeError as error:
        raise BadPlan(f"The plan cannot be read: {error}.", code="goal.bad_plan") from error
    check_complete(plan)
    stored = bytes(command.input)
    body = env.blob(parse_ref(stored).digest) if is_ref(stored) else unseal(stored)
    if body is None:
        return  # the input is checked once it is loaded, before any step starts
    given = given_values(body)
    missing = [name for name in plan.given if name not in given]
    if missing:
        raise BadPlan(
            f"The plan relies on given facts that the input does not have: {', '.join(missing)}.",
            hint="Make a new plan from the given facts.",
            code="goal.missing",
        )
    wrong = given_type_error(plan, given, env)
    if wrong is not None:
        raise BadValue(f"{wrong[0].upper()}{wrong[1:]}.", code="value.wrong_type")
