"""The fast path of a goal run: the task of a step succeeds, the step completes, and the steps that waited for it start.

See ``weft.core.run.plain``. ``tests/goal/test_plain.py`` compares this path with the tables.
"""

from __future__ import annotations

from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import PerformTask
from weft.core.goal.flow import NeedCounts
from weft.core.goal.nodes import StepNode
from weft.core.goal.outputs import BadOutput, outputs_of
from weft.core.goal.style import GoalStyle
from weft.core.goal.turn import start
from weft.core.run.env import Env, MissingInputs
from weft.core.run.plain import Continuation, succeeded_task
from weft.core.run.tasks import perform
from weft.core.values import MARKED

STARTS_MAX = 64
"""With more steps to start, other runs get their turn in between."""


def take_success(style: GoalStyle, report: c.ReportTaskSucceeded, env: Env) -> Continuation | None:
    """Record a success, complete its step and start others. None: this is not plain, and nothing has changed."""
    state, flow = style.state, style.items.flow
    place = state.places.get(report.task)
    if place is None or flow is None or not state.begun or succeeded_task(state, report) is None:
        return None
    step = flow.steps[place.step]
    takes = None if state.deadlines else _taken(step, flow, style, report, env)
    if takes is None:
        return None
    run, number = step.run, report.task
    state.at = env.now
    state.seq += 1
    state.steps_done += 1
    del state.tasks[number], state.places[number], run.open[place.index]
    run.active = run.left = 0
    run.results[place.index] = report.output
    run.answered = state.seq
    completed = e.StepCompleted(step=step.id, of=state.seq if takes else 0, takes=takes)
    state.seq += 1
    style.step_completed(completed)
    events: list[e.AnyEvent] = [
        e.TaskSucceeded(task=number, output=report.output, attempt=report.attempt),
        completed,
    ]
    effects: list[PerformTask] = []
    rests = _start_ready(style, flow, env, events, effects)
    return Continuation(events, effects, rests)


def _taken(
    step: StepNode, flow: NeedCounts, style: GoalStyle, report: c.ReportTaskSucceeded, env: Env
) -> dict[str, str] | None:
    """Return which parts of a result become facts, if that and nothing else completes the step."""
    run, shape = step.run, step.shape
    if run.status != "active" or run.fan_out or run.left != 1 or step.needed == 0 or flow.pumping or flow.unjudged:
        return None
    if shape.takes is None or shape.late or bytes(report.output).startswith(MARKED):
        return None
    try:
        found = outputs_of(shape, report.output, style.program.reader, env)
    except BadOutput:
        return None
    for fact in found:
        node = flow.facts[fact]
        if node.keeps or node.values:
            return None
    return shape.takes if len(found) == len(shape.takes) else {fact: shape.takes[fact] for fact in found}


def _start_ready(
    style: GoalStyle, flow: NeedCounts, env: Env, events: list[e.AnyEvent], effects: list[PerformTask]
) -> bool:
    """Start the steps that are ready, as far as each begins with a task. Returns whether nothing else follows."""
    state = style.state
    turn = style.turn(flow, env)
    for _ in range(STARTS_MAX):
        if flow.pumping or flow.fallen or flow.goals_failed or flow.idle or flow.waiting:
            return False
        ready = flow.first_ready() if flow.ready else None
        if ready is None:
            return bool(state.tasks)
        try:
            (event,) = start(turn, ready)
        except MissingInputs:
            return False
        if not isinstance(event, e.StepStarted) or event.task is None or event.task.policy.deadline_ms:
            return False
        state.seq += 1
        style.step_started(event)
        task = state.tasks[state.seq]
        events.append(event)
        effects.append(perform(state, state.seq, task, task.place))
    return False
