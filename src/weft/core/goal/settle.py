"""Settle a goal run: return the events that follow from its state, in a fixed order. Pure.

The caller repeats ``next_events`` until it returns none. The numbers in the comments are those in
docs/internals/goal.md#4-settle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.goal.inputs import given_type_error, given_values
from weft.core.goal.nodes import StepNode
from weft.core.goal.outputs import BadOutput, read_outputs
from weft.core.goal.plan import GoalPlan
from weft.core.goal.scripts import encode_json, load_contents
from weft.core.goal.state import OVER_STEP, GoalState, StepRun
from weft.core.goal.turn import Turn, complete_step, evaluate_matches, pump, start_step
from weft.core.run import undo
from weft.core.run.env import Env
from weft.errors import BadValue, Failure

NOT_MATCHED = "required match did not match"
NOT_NEEDED = "outputs not needed"
RUN_OVER = "run is over"


def next_events(turn: Turn) -> Sequence[e.AnyEvent]:
    """Return the next events that need no command, or none if the run is waiting. Raises MissingInputs."""
    flow = turn.flow
    failed = _check_deferred(turn) if flow.unchecked else None
    if failed is not None:
        return (failed,)
    working = flow.first_working() if flow.pumping else None
    if working is not None and not working.run.left:
        if working.is_idle:  # another step gave its facts while the run was paused, so undo this one
            return (e.StepSkipped(step=working.id, reason=NOT_NEEDED),)
        return complete_step(turn, working)
    if flow.unstartable and (unstartable := flow.first_unstartable()) is not None:  # 1
        return (_skip_or_fail(unstartable),)
    if flow.goals_failed:
        return (e.RunEnding(failure=run_failure(turn)),)
    if flow.idle and (idle := flow.idle_steps()):  # 2
        return [e.StepSkipped(step=step.id, reason=NOT_NEEDED) for step in idle]
    if working is not None:
        return pump(turn, working)
    if flow.waiting and (waiting := flow.waiting_steps()):  # 3
        return [
            _set_deadline(turn, step, need.fact.name, need.need.deadline) for step in waiting for need in step.windows()
        ]
    if flow.ready and (ready := flow.first_ready()) is not None:  # 4
        return start_step(turn, ready)
    if turn.state.tasks and not turn.state.reversals:
        return ()  # work is in progress
    return _end_or_undo(turn)


def _set_deadline(turn: Turn, step: StepNode, fact: str, wait_ms: object) -> e.DeadlineSet:
    assert isinstance(wait_ms, int)
    return e.DeadlineSet(step=step.id, name=fact, due=turn.env.now + wait_ms)


def _check_deferred(turn: Turn) -> e.StepFailedEvent | None:
    """Check the results that could not be checked when they arrived. Returns the failure of the first wrong one."""
    unchecked = turn.flow.unchecked
    while unchecked:
        step, index = unchecked[-1]
        if step.run.status == "active" and index in step.run.results:
            try:
                read_outputs(step.shape, step.run.results[index], turn.program.reader, turn.env)
            except BadOutput as bad:
                return e.StepFailedEvent(step=step.id, failure=bad.failure(step.id, index))
        unchecked.pop()
    return None


def _skip_or_fail(step: StepNode) -> e.StepSkipped | e.StepFailedEvent:
    if step.closed:
        closed = [need.fact.name for need in step.needs if need.gate and need.state == "closed"]
        return e.StepSkipped(step=step.id, reason=NOT_MATCHED, unsatisfied=closed)
    dead = [need for need in step.needs if need.need.role == "required" and need.state == "dead"]
    dead.sort(key=lambda need: not need.gate)
    first = dead[0]
    message = f"required input no longer available: {first.fact.name}"
    if first.broken:
        message = f"match could not be evaluated: {first.fact.name}"
    failure = Failure(type="input_lost", message=message, code="input_lost", step=step.id)
    return e.StepFailedEvent(step=step.id, failure=failure, unsatisfied=[need.fact.name for need in dead])


# --- the end -----------------------------------------------------------------------------------------------------


def _end_or_undo(turn: Turn) -> Sequence[e.AnyEvent]:
    state = turn.state
    if state.reversals:
        newest = undo.next_dropped(state)
        if newest is not None:
            return (undo.schedule_undo(newest),)
    if turn.flow.goals_left == 0:
        # Only undos and tasks that must not be interrupted can still be running.
        ending = state.tasks or state.parked or undo.has_dropped(state)
        return () if ending else (completed_event(turn.flow.plan, state, turn.env),)
    stopping = all(child.cancelled for child in state.children.values())
    if not (state.tasks or state.parked or state.timers or state.asks) and stopping:
        waiting = sorted(step.id for step in turn.flow.by_index if step.run.status not in OVER_STEP)
        message = f"nothing can move: {', '.join(waiting)}"
        return (e.RunEnding(failure=Failure(type="deadlock", message=message, code="deadlock")),)
    return ()


def run_failure(turn: Turn) -> Failure:
    """Return the failure of the run: the first goal that failed, and the step whose failure is the root cause."""
    state, plan = turn.state, turn.flow.plan
    goal = next(goal for goal in plan.goals if goal in turn.flow.goals_failed)
    cause = goal
    while state.steps[cause].lost:
        providers = plan.facts[state.steps[cause].lost].providers
        failed = [step for step in providers if state.steps[step].status == "failed"] or providers
        if not failed:
            break
        cause = failed[0]
    root = state.steps[cause]
    dropped = [step for step, run in state.steps.items() if run.status not in OVER_STEP]
    attributes: dict[str, Any] = {"goal": goal, "cause": cause, "dropped": dropped}
    failure = Failure(
        type="goal_failed",
        message=f"goal step '{goal}' cannot complete: {state.steps[goal].why}",
        code="goal_failed",
        step=cause,
        attributes=attributes,
    )
    if root.failure is None:
        return failure
    attributes["failure"] = root.failure.type
    return msgspec.structs.replace(
        failure,
        location=root.failure.location,
        attempts=root.failure.attempts,
        cause=root.failure.cause or ("" if cause == goal else root.failure.brief()),
        traceback=root.failure.traceback,
    )


def completed_event(plan: GoalPlan, state: GoalState, env: Env) -> e.RunCompleted:
    """Return the result of the run: the outputs of its goals, all facts, and the raw results of the goals."""
    own: dict[str, Raw] = {}
    raw_results: dict[str, StepRun] = {}
    for goal in plan.goals:
        run = state.steps.get(goal)
        if run is not None:
            outputs = run.outputs
            if run.status == "completed":
                raw_results[goal] = run
        else:
            outputs = {name: state.facts[name][0].value for name in plan.excluded[goal].by if name in state.facts}
        for name in sorted(outputs):
            own.setdefault(name, outputs[name])
    facts = {name: state.facts[name][0].value for name in sorted(state.facts) if state.facts[name]}
    failed = list(state.not_undone)
    if state.parent is not None and state.parent.facts:
        loaded_facts = iter(load_contents(facts.values(), env))
        body = {name: Raw(next(loaded_facts)) for name in facts}
        return e.RunCompleted(output=env.keep(encode_json(body)), not_undone=failed)
    skipped = [goal for goal in plan.goals if goal in state.steps and state.steps[goal].status == "skipped"]
    returned = [raw for run in raw_results.values() for raw in run.results.values()]
    loaded = iter(load_contents((*own.values(), *facts.values(), *returned), env))
    result = {
        "result": {name: Raw(next(loaded)) for name in own},
        "facts": {name: Raw(next(loaded)) for name in facts},
        "of": {goal: _returned_result(run, loaded) for goal, run in raw_results.items()},
        "skipped": skipped,
    }
    return e.RunCompleted(output=env.keep(encode_json(result)), not_undone=failed)


def _returned_result(run: StepRun, loaded: Iterator[bytes]) -> Any:
    """Return the raw result of a step, or for a fan-out a list, with null for each skipped item."""
    results = {index: next(loaded) for index in run.results}
    if not run.fan_out:
        return Raw(results[0])
    return [Raw(results[index]) if index in results else None for index in range(run.items)]


# --- given values ------------------------------------------------------------------------------------------------


def begin_with_given(turn: Turn) -> Sequence[e.AnyEvent]:
    """Check the given values, if they are in a blob or a step of the plan has a ``match`` on them."""
    state = turn.state
    try:
        given = given_values(load_contents([state.input], turn.env)[0])
    except BadValue as error:
        return (e.RunEnding(failure=Failure(type="BadValue", message=error.message, code=error.code)),)
    wrong = given_type_error(turn.flow.plan, given, turn.env)
    if wrong is not None:
        failure = Failure(type="BadValue", message=wrong, code="value.wrong_type")
        return (e.RunEnding(failure=failure),)
    matched: dict[str, list[str]] = {}
    broken: dict[str, dict[str, str]] = {}
    for name, raw in given.items():
        passes, breaks = evaluate_matches(turn, name, raw)
        if passes:
            matched[name] = passes
        if breaks:
            broken[name] = breaks
    in_state = bool(state.facts) or not given
    values = {} if in_state else {name: turn.env.keep(raw) for name, raw in given.items()}
    return (e.FactsGiven(values=values, matched=matched, broken=broken),)
