"""Asynchronous work that an external service accepted and will answer later, with a separate command. Pure.

An accepted task is *parked*. No worker performs it, so it cannot be lost, and a timer fails it if no answer comes.
While the task is open, the success of any attempt counts, but only a failure of the latest attempt. Other answers are
late and have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import EntryId
from weft.core.run import tasks, timers, withheld
from weft.core.run.contracts import judge_effect
from weft.core.run.state import State
from weft.errors import Failure

ANSWER_MS = 24 * 3_600_000
"""How long to wait for an answer by default."""


def decide_accepted(state: State, report: c.ReportWorkAccepted, now: int) -> Sequence[e.AnyEvent]:
    """Park a task that the external service accepted. The time to answer counts from the dispatch of the task."""
    task = state.tasks.get(report.task)
    if task is None or (task.attempt, task.delivery) != (report.attempt, report.delivery):
        return ()
    due = max(task.since, task.due) + (task.policy.timeout_ms or ANSWER_MS)
    return (e.WorkAccepted(task=report.task, due=max(now, min(due, timers.task_due(task) or due))),)


def decide_work_answer(state: State, answer: c.AnswerWork, now: int) -> Sequence[e.AnyEvent]:
    """Record the answer to a task. It counts for a draining task too, because an undo depends on the outcome."""
    number = answer.task
    task = state.parked.get(number) or state.tasks.get(number)
    if task is None or withheld.is_unconfirmed(state, number):
        return ()
    if answer.failure is None:
        return (e.TaskSucceeded(task=number, output=answer.output, attempt=task.attempt),)
    retried = task.last is not None and task.due > now
    waiting = number not in state.accepted if number in state.parked else retried
    latest = task.attempt - 1 if waiting else task.attempt
    if answer.attempt not in (0, latest) or (waiting and answer.retryable):
        return ()
    report = c.ReportTaskFailed(number, task.attempt, task.delivery, answer.failure, answer.retryable)
    return (tasks.attempt_failed(state, task, report, now),)


def decide_unanswered(state: State, number: EntryId, message: str, now: int) -> Sequence[e.AnyEvent]:
    """Fail an attempt that was not answered in time, and schedule the next attempt if there is one."""
    task = state.parked[number]
    if now < state.timers[number]:
        return ()
    due = timers.task_due(task)
    if due and now >= due:
        return (timers.deadline_passed(number, task),)
    unknown = judge_effect("lost", task.policy.effect) == "unknown" or task.draining
    failure = Failure(
        type="OutcomeUnknown" if unknown else "timed_out",
        message=message.format(task),
        code=tasks.UNKNOWN if unknown else "timed_out",
        step=task.step,
        attempts=task.attempt,
    )
    report = c.ReportTaskFailed(number, task.attempt, task.delivery, failure, retryable=True)
    return (tasks.attempt_failed(state, task, report, now),)


def evolve_accepted(state: State, event: e.WorkAccepted) -> None:
    """Park an accepted task: no worker performs it from now on."""
    state.parked[event.task] = state.tasks.pop(event.task)
    state.accepted[event.task] = state.timers[event.task] = event.due


def unpark(state: State, number: int) -> bool:
    """Move a parked task back to the open tasks, because it ends now. Returns whether it was waiting for a retry."""
    state.tasks[number] = state.parked.pop(number)
    if state.timers.pop(number, None) is not None:
        state.gone.append(number)
    return state.accepted.pop(number, None) is None


def drop_parked(state: State, number: int) -> bool:
    """Drop a parked task. Returns False if the task drains instead, because an undo depends on its outcome."""
    if withheld.is_unconfirmed(state, number):
        withheld.drop_unconfirmed(state, number)
        return True
    if tasks.must_drain_task(state.parked[number]):
        state.parked[number].draining = True
        return False
    del state.parked[number], state.timers[number], state.accepted[number]
    return True
