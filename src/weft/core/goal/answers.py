"""What comes back from the world for a work item: results, failures, losses, times. Pure.

A report counts only for the live attempt and delivery; an asynchronous answer names its item instead. Where an item
fails for good its step fails with it, at once.

Rules: docs/internals/goal.md#5-commands.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.definitions import ASYNC_MS
from weft.core.goal.fold import Fold
from weft.core.goal.outputs import BadOutput, is_deferred, outputs_of
from weft.core.goal.reading import GoalProgram
from weft.core.goal.state import Place
from weft.core.ids import EntryId
from weft.core.run import tasks, timers
from weft.core.run.env import Env
from weft.core.run.retry import backoff_ms
from weft.core.run.state import Task
from weft.errors import Failure

RETRY_AFTER = "retry_after_ms"
"""An attribute of a failure: how long the far side wants to be left alone."""
RETRY_AFTER_MS_MAX = 24 * 3_600_000


def succeeded(fold: Fold, program: GoalProgram, report: c.ReportTaskSucceeded, env: Env) -> Sequence[e.AnyEvent]:
    """A result of the live attempt; one that is not of its declared type is a final failure."""
    decided = tasks.decide_succeeded(fold.state, report)
    if not decided:
        return ()
    return _judged(fold, program, decided[0], env)


def _judged(fold: Fold, program: GoalProgram, success: e.TaskSucceeded, env: Env) -> Sequence[e.AnyEvent]:
    place = fold.state.places.get(success.task)
    bad = _misfit(fold, program, place, bytes(success.output), env)
    if bad is None or place is None:
        return (success,)
    failure = bad.failure(place.step)
    return _and_step(fold, [e.TaskFailed(task=success.task, failure=failure, attempt=success.attempt)])


def _misfit(fold: Fold, program: GoalProgram, place: Place | None, result: bytes, env: Env) -> BadOutput | None:
    """What is wrong with a result that can be looked at now; one of a step that is over is not looked at."""
    if place is None or fold.state.steps[place.step].status != "active":
        return None
    assert fold.flow is not None
    shape = fold.flow.steps[place.step].shape
    if is_deferred(shape, result):
        return None
    try:
        found = outputs_of(shape, result, program.reader, env)
    except BadOutput as bad:
        return bad
    if not fold.state.steps[place.step].fan_out:
        fold.flow.judged[place.step] = found
    return None


def failed(fold: Fold, report: c.ReportTaskFailed, env: Env) -> Sequence[e.AnyEvent]:
    """A failed attempt is tried again later, or fails its step."""
    decided = [_moved(event, env.now) for event in tasks.decide_failed(fold.state, report, env.now)]
    return _and_step(fold, decided)


def _moved(event: e.TaskFailed, now: int) -> e.TaskFailed:
    """A far side that says how long it wants to be left alone is left alone that long."""
    wish = event.failure.attributes.get(RETRY_AFTER)
    if not event.retry_at or not isinstance(wish, int | float) or wish <= 0:
        return event
    return msgspec.structs.replace(event, retry_at=max(event.retry_at, now + min(int(wish), RETRY_AFTER_MS_MAX)))


def lost(fold: Fold, report: c.ReportTaskLost, env: Env) -> Sequence[e.AnyEvent]:
    """Nobody performs it any more: it is handed out again, or its outcome is unknown."""
    return _and_step(fold, tasks.decide_lost(fold.state, report, env.now))


def _and_step(fold: Fold, events: Sequence[e.AnyEvent]) -> Sequence[e.AnyEvent]:
    """A step fails with the first of its items that fails for good."""
    last = events[-1] if events else None
    match last:
        case e.TaskFailed(task=number, failure=failure, retry_at=0):
            return (*events, *_step_failed(fold, number, failure))
        case e.WaitTimedOut(wait=number):
            late = Failure(type="timed_out", message="timed_out", code="timed_out")
            return (*events, *_step_failed(fold, number, late))
    return events


def _step_failed(fold: Fold, number: int, failure: Failure) -> Sequence[e.AnyEvent]:
    place = fold.state.places.get(number)
    if place is None or fold.state.steps[place.step].status != "active":
        return ()
    return (e.StepFailed(step=place.step, failure=msgspec.structs.replace(failure, step=place.step)),)


def child_ended(fold: Fold, program: GoalProgram, report: c.ReportChildEnded, env: Env) -> Sequence[e.AnyEvent]:
    """The child was the task. What it fails with is final."""
    state = fold.state
    child = state.children.get(report.child)
    if child is None:
        return ()
    place = state.places.get(report.child)
    ended = e.ChildEnded(child=report.child, status=report.status, output=report.output, failure=report.failure)
    if place is None:
        return (ended,)
    if report.status != "completed":
        cancelled = Failure(type="RunCancelled", message=f"{child.run_id} was cancelled", code="run.cancelled")
        return (ended, *_step_failed(fold, report.child, report.failure or cancelled))
    bad = _misfit(fold, program, place, bytes(report.output), env)
    return (ended,) if bad is None else (ended, *_step_failed(fold, report.child, bad.failure(place.step)))


# --- asynchronous work -------------------------------------------------------------------------------------------


def accepted(fold: Fold, report: c.ReportWorkAccepted, env: Env) -> Sequence[e.AnyEvent]:
    """The far side has the work. From its hand-out on it has its time to answer."""
    task = fold.state.tasks.get(report.task)
    if task is None or (task.attempt, task.delivery) != (report.attempt, report.delivery):
        return ()
    if report.task not in fold.state.places:
        return ()
    due = max(env.now, task.since + (task.policy.timeout_ms or ASYNC_MS))
    return (e.WorkAccepted(task=report.task, due=due),)


def answered(fold: Fold, program: GoalProgram, answer: c.AnswerWork, env: Env) -> Sequence[e.AnyEvent]:
    """A success of any attempt, or a failure of the latest, counts while the item is open."""
    state, number = fold.state, answer.task
    task = state.tasks.get(number) or state.parked.get(number)
    if task is None:
        return ()
    if answer.failure is None:
        success = e.TaskSucceeded(task=number, output=answer.output, attempt=task.attempt)
        return _judged(fold, program, success, env)
    waiting = number in state.parked and number not in state.accepted
    latest = task.attempt - 1 if waiting else task.attempt
    if answer.attempt not in (0, latest) or (waiting and answer.retryable):
        return ()
    return _and_step(fold, [_attempt_failed(fold, number, answer.failure, retryable=answer.retryable, now=env.now)])


def _attempt_failed(fold: Fold, number: EntryId, failure: Failure, *, retryable: bool, now: int) -> e.TaskFailed:
    """The same decision as for a task in somebody's hands."""
    state = fold.state
    task = state.tasks.get(number) or state.parked[number]
    final = not retryable or task.attempt >= task.policy.attempts_max or task.draining
    retry_at = 0
    if not final and task.policy.effect != "irreversible":
        retry_at = now + backoff_ms(task.policy, attempt=task.attempt, seed=f"{state.uid}/{number}")
    return _moved(e.TaskFailed(task=number, failure=failure, attempt=task.attempt, retry_at=retry_at), now)


def recalled(fold: Fold, program: GoalProgram, recall: c.RecallWork, env: Env) -> Sequence[e.AnyEvent]:
    """An answer out of an earlier run, with where it comes from."""
    report = c.ReportTaskSucceeded(recall.task, recall.attempt, recall.delivery, recall.output)
    events = succeeded(fold, program, report, env)
    if not events:
        return ()
    return (e.WorkRecalled(task=recall.task, run_id=recall.run_id, at=recall.at), *events)


# --- times -------------------------------------------------------------------------------------------------------


def timer(fold: Fold, command: c.FireTimer, env: Env) -> Sequence[e.AnyEvent]:
    """A time has come: of an optional fact, of asynchronous work, of a retry, of a question or child, of the run."""
    state, number = fold.state, command.entry
    due = state.timers.get(number, 0)
    if number in state.deadlines:
        window = state.deadlines[number]
        passed = e.DeadlinePassed(timer=number, step=window.step, name=window.fact)
        return (passed,) if env.now >= due else ()
    if number in state.accepted:
        return _unanswered(fold, number, state.parked[number], env) if env.now >= due else ()
    decided = timers.decide_timer(state, command, env)
    if decided and isinstance(decided[0], e.RunTimedOut):
        late = Failure(type="deadline", message=f"{state.run_id} did not end in its time", code="deadline")
        return (*decided, e.RunEnding(failure=late))
    return _and_step(fold, decided)


def _unanswered(fold: Fold, number: EntryId, task: Task, env: Env) -> Sequence[e.AnyEvent]:
    unknown = task.policy.effect == "irreversible" or task.draining
    failure = Failure(
        type="OutcomeUnknown" if unknown else "timed_out",
        message="timed_out",
        code=tasks.UNKNOWN if unknown else "timed_out",
        step=task.step,
        attempts=task.attempt,
    )
    return _and_step(fold, [_attempt_failed(fold, number, failure, retryable=True, now=env.now)])
