"""Dispatch, complete, retry and undo tasks, in the same way for every style. Pure.

A report counts only if its task, attempt and delivery are current. A success may also come from an earlier delivery of
the current attempt, because its work is done even if its worker was believed dead. Leases and timeouts only decide when
a task is dispatched again. This module does not know what waits for a task.

Rules: docs/internals/engine.md#rule-7.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from weft.core.commands import ReportTaskFailed, ReportTaskLost, ReportTaskSucceeded
from weft.core.effects import PerformTask
from weft.core.events import (
    DEFAULT_POLICY,
    NULL,
    Repetition,
    TaskFailed,
    TaskLost,
    TaskScheduled,
    TaskSucceeded,
    UndoScheduled,
)
from weft.core.ids import EntryId
from weft.core.run import covers, repeats, undo, withheld
from weft.core.run.contracts import judge_effect
from weft.core.run.retry import LOST_MAX, backoff_ms, loss_ms
from weft.core.run.state import OpenTask, State, Undo
from weft.core.run.style import AnyRun
from weft.errors import Failure

UNKNOWN = repeats.UNKNOWN


def _current_task(state: State, task: int, attempt: int, delivery: int) -> OpenTask | None:
    current = state.tasks.get(task)
    if current is None or current.attempt != attempt or current.delivery != delivery:
        return None
    return current


def decide_succeeded(state: State, report: ReportTaskSucceeded) -> Sequence[TaskSucceeded]:
    """Record the first result of the current attempt, from any of its deliveries. Other results are late."""
    task = state.tasks.get(report.task)
    if task is None or task.attempt != report.attempt or not 1 <= report.delivery <= task.delivery:
        return ()
    earlier = report.delivery if report.delivery < task.delivery else 0
    # What an earlier delivery spent was settled when it was believed lost.
    spent = report.spent if not earlier else None
    succeeded = TaskSucceeded(
        task=report.task, output=report.output, attempt=report.attempt, earlier=earlier, spent=spent
    )
    return (succeeded,)


def decide_failed(state: State, report: ReportTaskFailed, now: int) -> Sequence[TaskFailed]:
    """Record a failed attempt. It is retried unless it was the last, cannot be repeated, or is draining."""
    task = _current_task(state, report.task, report.attempt, report.delivery)
    return () if task is None else (attempt_failed(state, task, report, now),)


def attempt_failed(state: State, task: OpenTask, report: ReportTaskFailed, now: int) -> TaskFailed:
    """Return the event for a failed attempt: a retry, or the final failure."""
    final = (
        not report.retryable
        or task.attempt >= task.policy.attempts_max
        or judge_effect("failed", task.policy.effect) == "fail"
        or task.draining
    )
    retry_at = 0
    if not final:
        delay = backoff_ms(task.policy, attempt=task.attempt, seed=f"{state.uid}/{report.task}")
        retry_at = now + max(delay, report.wait_ms)
    return TaskFailed(
        task=report.task, failure=report.failure, attempt=task.attempt, retry_at=retry_at, spent=report.spent
    )


def decide_lost(state: State, report: ReportTaskLost, now: int) -> Sequence[TaskFailed | TaskLost]:
    """Dispatch a lost task again. A task that must not run twice fails instead, with an unknown outcome."""
    task = _current_task(state, report.task, report.attempt, report.delivery)
    if task is None:
        return ()
    if judge_effect("lost", task.policy.effect) == "unknown" or task.draining:
        failure = Failure(
            type="OutcomeUnknown",
            message=f"the worker of {task.step} was lost, and the step must not be performed twice",
            code=UNKNOWN,
            step=task.step,
            attempts=task.attempt,
        )
        return (TaskFailed(task=report.task, failure=failure, attempt=task.attempt),)
    if task.lost >= LOST_MAX:
        failure = Failure(
            type="WorkerLost",
            message=f"{task.step} was lost with {task.lost + 1} workers",
            code="step.worker_lost",
            step=task.step,
            attempts=task.attempt,
        )
        return (TaskFailed(task=report.task, failure=failure, attempt=task.attempt),)
    delay = loss_ms(task.lost + 1)
    retry_at = max(now + delay if delay else 0, task.due if task.due > now else 0)
    return (TaskLost(task=report.task, delivery=task.delivery + 1, retry_at=retry_at),)


def evolve_scheduled(state: State, event: TaskScheduled, arguments: Raw) -> OpenTask:
    """Open a task, with the number of the event."""
    task = state.tasks[state.seq] = OpenTask(
        step=event.step,
        input=arguments,
        since=state.at,
        policy=event.policy,
        undo=event.undo,
        inline=event.inline,
        early=event.early,
    )
    if event.again is not None or state.fork is not None:
        withheld.hold_back_if_needed(state, task, event.again)
    if event.cover is not None or state.spends:
        covers.open_covered(state, task, event.cover)
    return task


def evolve_succeeded(run: AnyRun, event: TaskSucceeded) -> OpenTask:
    """Close a successful task. If it can be undone, put it on the undo stack."""
    state = run.state
    task = state.tasks.pop(event.task)
    if event.spent is not None:
        covers.note_spent(state, task, event.spent)
    if task.policy.deadline_ms:
        state.gone.append(-event.task)
    if task.undo_of:
        state.undoing = 0
        if task.dropped:
            state.renewed[task.undoes] = state.renewed.get(task.undoes, 0) + 1
        else:
            state.undone.append(task.undoes)
    else:
        state.steps_done += 1
        if task.undo is not None and not event.copied:
            remember_undo(state, event.task, task, event.output, task.place or run.style.locate(event.task))
        if state.reversals:
            undo.note_task_ended(state, event.task)
    return task


def evolve_failed(run: AnyRun, event: TaskFailed) -> OpenTask | None:
    """Close and return a task that failed for good. Otherwise prepare its next attempt and return None."""
    state = run.state
    if event.spent is not None:
        covers.note_spent(state, state.tasks[event.task], event.spent)
    if event.retry_at:
        task = state.tasks[event.task]
        task.attempt += 1
        task.due = event.retry_at
        task.last = event.failure
        return None
    task = state.tasks.pop(event.task)
    if task.policy.deadline_ms:
        state.gone += (event.task, -event.task)  # a worker may still perform the task after its deadline
    if task.undo_of:
        state.undoing = 0
        state.not_undone.append(f"{task.step}: {event.failure.message}")
    else:
        if event.failure.code == UNKNOWN:
            remember_undo(state, event.task, task, NULL, task.place or run.style.locate(event.task))
        undo.note_task_ended(state, event.task)
    return task


def must_drain_task(task: OpenTask) -> bool:
    """Return whether the run must wait for a task to end even if its result is not used."""
    return not task.withheld and judge_effect("dropped", task.policy.effect, has_undo=task.undo is not None) == "drain"


def remember_undo(state: State, number: int, task: OpenTask, output: Raw, place: str) -> None:
    """Put a task that can be undone on the undo stack."""
    if task.undo is not None:
        undo = Undo(
            task=number,
            plan=task.undo,
            input=task.input,
            output=output,
            location=place,
            done=state.seq,
            kept=task.kept,
            within=task.within,
            n=key_number(state, task, place),
        )
        state.undo.append(undo)


def key_number(state: State, task: OpenTask, place: str) -> int:
    """Return the number in the key of a task (0: none)."""
    return task.again.n if task.again is not None else state.renewed.get(place, 0)


def evolve_lost(state: State, event: TaskLost) -> None:
    """Count a loss. The next delivery gets a new number, so that a failure of the lost delivery is ignored."""
    task = state.tasks[event.task]
    task.delivery = event.delivery
    task.lost += 1
    task.due = event.retry_at


def evolve_undo(state: State, event: UndoScheduled) -> None:
    """Open a task for the newest undo."""
    taken, dropped = undo.take_undo(state, event.of)
    state.tasks[state.seq] = OpenTask(
        step=event.step,
        input=event.input,
        since=state.at,
        policy=taken.plan.policy,
        undo_of=event.of,
        undoes=taken.location,
        takes=taken.plan.takes,
        dropped=dropped,
        again=Repetition(f"{taken.location}!undo", taken.n) if taken.n else None,
    )
    state.undoing = state.seq


def make_perform_task(state: State, number: int, task: OpenTask, location: str) -> PerformTask:
    """Return the effect that dispatches a task."""
    policy = task.policy
    if state.queue and policy.queue == DEFAULT_POLICY.queue:
        policy = msgspec.structs.replace(policy, queue=state.queue)
    place = location
    times = state.renewed.get(location, 0) if state.renewed else 0
    if task.again is not None:
        place, times = task.again.place, task.again.n
    return PerformTask(
        task=EntryId(number),
        attempt=task.attempt,
        delivery=task.delivery,
        step=task.step,
        input=task.input,
        key=f"{state.uid}/{place}~{times}" if times else f"{state.uid}/{place}",
        location=location,
        policy=policy,
        due=task.due,
        inline=task.inline,
        takes=task.takes,
        cover=task.cover,
    )
