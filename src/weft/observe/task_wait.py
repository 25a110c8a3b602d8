"""Waits for tasks and timers, which are the same in all styles."""

from __future__ import annotations

from weft.core.durations import time_of
from weft.core.machine import Machine
from weft.core.run.state import OpenTask
from weft.observe.diagnosis import PendingWait, WaitKind, without_traceback


def task_wait(machine: Machine, kind: WaitKind, number: int, task: OpenTask, due: int = 0) -> PendingWait:
    """Return the wait for a task. ``due`` is when the wait ends by itself; 0 if it does not."""
    return PendingWait(
        kind=kind,
        place=machine.location(number),
        number=number,
        since=time_of(task.since if kind == "retry" else max(task.since, task.due)),
        due=time_of(due) if due else None,
        step=task.step,
        attempt=task.attempt,
        attempts_max=task.policy.attempts_max,
        timeout_ms=task.policy.timeout_ms,
        failure=without_traceback(task.last) if task.last is not None else None,
    )


def timer_wait(machine: Machine, kind: WaitKind, number: int, due: int) -> PendingWait:
    """Return the wait for a timer."""
    since = time_of(machine.state.at)
    return PendingWait(kind=kind, place=machine.location(number), number=number, since=since, due=time_of(due))
