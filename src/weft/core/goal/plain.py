"""The fast path of a goal run: the task of a step succeeds, the step completes, and the steps that waited for it start.

See ``weft.core.run.plain``. In a run of a simple plan this needs no counts. ``tests/goal/test_plain.py`` compares this
path with the tables.
"""

from __future__ import annotations

from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.nodes import StepNode
from weft.core.goal.outputs import BadOutput, read_outputs
from weft.core.goal.shape import SimpleStep, StepShape
from weft.core.goal.simple import STARTS_MAX, start_simple
from weft.core.goal.state import Place
from weft.core.goal.style import GoalStyle
from weft.core.goal.turn import start_step
from weft.core.run.env import Env, MissingInputs
from weft.core.run.plain import Continuation, succeeded_task
from weft.core.run.tasks import make_perform_task
from weft.core.values import MARKED


def take_success(style: GoalStyle, report: c.ReportTaskSucceeded, env: Env) -> Continuation | None:
    """Record a success, complete its step and start others. Returns None, and changes nothing, in any other case."""
    state = style.state
    place = state.places.get(report.task)
    if place is None or state.deadlines or state.earlier or not state.begun or succeeded_task(state, report) is None:
        return None
    simple = style.simple
    if simple is None:
        return _take_counted(style, place, report, env)
    step = simple.steps[place.step]
    takes = _parts_that_become_facts(step.shape, style, report, env)
    if takes is None or len(takes) < len(step.shape.gives):
        return None
    done = Continuation(_complete_step(style, report, env, takes=takes, flow=None), [], rests=False)
    return _start_readers(style, step, done, env)


def _take_counted(style: GoalStyle, place: Place, report: c.ReportTaskSucceeded, env: Env) -> Continuation | None:
    """Do the same as ``take_success`` in a run that needs the counts."""
    flow = style.items.flow
    if flow is None or flow.pumping or flow.unchecked:
        return None
    step = flow.steps[place.step]
    if not _has_only_result(step):
        return None
    takes = _parts_that_become_facts(step.shape, style, report, env)
    if takes is None or any(flow.facts[fact].keeps or flow.facts[fact].values for fact in takes):
        return None
    done = Continuation(_complete_step(style, report, env, takes=takes, flow=flow), [], rests=False)
    return _start_ready(style, flow, done, env)


def _has_only_result(step: StepNode) -> bool:
    """Return whether a step has its only result now, and something needs it."""
    run = step.run
    return run.status == "active" and not run.fan_out and run.left == 1 and step.needed > 0


def _parts_that_become_facts(
    shape: StepShape, style: GoalStyle, report: c.ReportTaskSucceeded, env: Env
) -> dict[str, str] | None:
    """Return which parts of a result become facts.

    None if they cannot be read now, or if the result has the wrong type.
    """
    takes, result = shape.takes, bytes(report.output)
    if takes is None or shape.deferred or result.startswith(MARKED):
        return None
    try:
        found = read_outputs(shape, result, style.program.reader, env)
    except BadOutput:
        return None
    return takes if len(found) == len(takes) else {fact: takes[fact] for fact in found}


def _complete_step(
    style: GoalStyle, report: c.ReportTaskSucceeded, env: Env, *, takes: dict[str, str], flow: NeedCounts | None
) -> list[e.AnyEvent]:
    """Complete the step of a task that has succeeded."""
    state, number = style.state, report.task
    place = state.places.pop(number)
    run = state.steps[place.step]
    state.at = env.now
    state.seq += 1
    state.steps_done += 1
    del state.tasks[number], run.open[place.index]
    run.active = run.left = 0
    run.results[place.index] = report.output
    run.answered = state.seq
    completed = e.StepCompleted(step=place.step, of=state.seq if takes else 0, takes=takes)
    state.seq += 1
    style.complete(completed, flow)
    return [e.TaskSucceeded(task=number, output=report.output, attempt=report.attempt), completed]


def _start_readers(style: GoalStyle, step: SimpleStep, done: Continuation, env: Env) -> Continuation:
    """Start the steps that have all their facts now."""
    state = style.state
    ready = [reader for reader in step.readers if reader.needs <= state.facts.keys()]
    if len(ready) > STARTS_MAX:
        return done
    for reader in ready:
        event = start_simple(reader, state, style.program, env)
        if event is None:
            return done
        _start_step(style, event, None, done)
    style.stay_simple()
    done.rests = bool(state.tasks)
    return done


def _start_ready(style: GoalStyle, flow: NeedCounts, done: Continuation, env: Env) -> Continuation:
    """Start the steps that are ready, as far as each begins with a task."""
    turn = style.turn(env)
    for _ in range(STARTS_MAX):
        if flow.pumping or flow.unstartable or flow.goals_failed or flow.idle or flow.waiting:
            return done
        ready = flow.first_ready() if flow.ready else None
        if ready is None:
            done.rests = bool(style.state.tasks)
            return done
        try:
            (event,) = start_step(turn, ready)
        except MissingInputs:
            return done
        if not isinstance(event, e.StepStarted) or event.task is None or event.task.policy.deadline_ms:
            return done
        _start_step(style, event, flow, done)
    return done


def _start_step(style: GoalStyle, event: e.StepStarted, flow: NeedCounts | None, done: Continuation) -> None:
    """Start a step with its task."""
    state = style.state
    state.seq += 1
    style.begin_step(event, flow)
    task = state.tasks[state.seq]
    done.events.append(event)
    done.effects.append(make_perform_task(state, state.seq, task, task.place))
