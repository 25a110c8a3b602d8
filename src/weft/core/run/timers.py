"""Decide timers: sleeps, the deadlines of tasks, waits, questions and children, and the run's own deadline. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.commands import FireTimer
from weft.core.events import AnyEvent, RunTimedOut, TaskFailed, TimerFired, WaitTimedOut
from weft.core.ids import CANCEL, EntryId
from weft.core.run import questions
from weft.core.run.contracts import judge_effect
from weft.core.run.env import Env
from weft.core.run.state import OpenTask, State
from weft.errors import Failure


def decide_timer(state: State, command: FireTimer, env: Env) -> Sequence[AnyEvent]:
    """Decide a timer that fired. A timer that is early, or whose entry has ended, has no effect."""
    number = command.entry
    if number == 0:
        is_due = (
            state.due and env.now >= state.due and not state.timed_out and state.cancelled is None and not state.ended
        )
        return (RunTimedOut(),) if is_due else ()
    if number < 0:
        return _task_due(state, EntryId(-number), env.now)
    if (due := state.timers.get(number)) is not None:
        return (TimerFired(timer=number),) if env.now >= due else ()
    if (wait := state.waits.get(number)) is not None:
        return (WaitTimedOut(wait=number),) if wait.due and env.now >= wait.due else ()
    if (ask := state.asks.get(number)) is not None:
        return questions.decide_due(number, ask, env.now)
    if (child := state.children.get(number)) is not None and child.due and not child.cancelled and env.now >= child.due:
        return (WaitTimedOut(wait=number, child=child.uid),)
    return ()


def task_due(task: OpenTask) -> int:
    """Return the deadline of a task for all its attempts together (0: none)."""
    return task.since + task.policy.deadline_ms if task.policy.deadline_ms and not task.draining else 0


def _task_due(state: State, number: EntryId, now: int) -> Sequence[AnyEvent]:
    task = state.tasks.get(number)
    if task is None or not task_due(task) or now < task_due(task):
        return ()
    return (deadline_passed(number, task),)


def deadline_passed(number: EntryId, task: OpenTask) -> TaskFailed:
    """Return the failure of a task whose deadline has passed."""
    unknown = judge_effect("lost", task.policy.effect) == "unknown"
    failure = Failure(
        type="OutcomeUnknown" if unknown else "deadline",
        message=f"{task.step} did not end within {task.policy.deadline_ms} ms, counting all attempts",
        code="step.outcome_unknown" if unknown else "deadline",
        step=task.step,
        attempts=task.attempt,
    )
    return TaskFailed(task=number, failure=failure, attempt=task.attempt)


def entry_due(state: State, number: int) -> int:
    """Return when an open entry is due (0: never). Entry 0 is the run's own deadline."""
    if number == CANCEL:
        over = state.timed_out or state.cancelled is not None or state.ended
        return 0 if over else state.due
    if number < 0:
        task = state.tasks.get(-number)
        return task_due(task) if task is not None else 0
    if number in state.timers:
        return state.timers[number]
    if number in state.asked:
        return state.asked[number].event.due
    child = state.children.get(number)
    if child is not None and child.cancelled:
        return 0
    question = state.asks.get(number)
    if question is not None:
        return questions.question_due(question)
    item = state.waits.get(number) or child
    return item.due if item is not None else 0
