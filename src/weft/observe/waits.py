"""What a run waits for: steps, retries, time, answers, messages, people, child runs, optional facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from weft.core.durations import time_of
from weft.core.machine import Machine
from weft.core.run.questions import allowed_people
from weft.observe.diagnosis import IdleTask, PendingWait
from weft.observe.styles import views_of
from weft.observe.task_wait import task_wait


def waits_of(machine: Machine, now: int, idle: Mapping[int, IdleTask] | None = None) -> list[PendingWait]:
    """Return what the run waits for. ``idle`` has the tasks that no worker performs."""
    if machine.state.moved is not None:
        return []  # another store goes on with it
    return [
        *_task_waits(machine, now, idle or {}),
        *views_of(machine.style.name).waits(machine, now),
        *_message_waits(machine),
        *_question_waits(machine),
        *_child_waits(machine),
        *_patch_waits(machine),
    ]


def _task_waits(machine: Machine, now: int, idle: Mapping[int, IdleTask]) -> Iterator[PendingWait]:
    for number, task in machine.state.tasks.items():
        if task.due > now and task.last is not None:
            yield task_wait(machine, "retry", number, task, task.due)
            continue
        wait = task_wait(machine, "step", number, task)
        found = idle.get(number)
        if found is not None:
            wait = replace(wait, is_performed=False, queue=found.queue, limit=found.limit, key=found.key)
            wait = replace(wait, standing=found.standing, due=time_of(found.due) if found.due else None)
        yield wait


def _message_waits(machine: Machine) -> Iterator[PendingWait]:
    for number, wait in machine.state.waits.items():
        yield PendingWait(
            kind="message",
            place=machine.location(number),
            number=number,
            since=time_of(wait.since),
            due=time_of(wait.due) if wait.due else None,
            names=list(wait.names),
        )


def _question_waits(machine: Machine) -> Iterator[PendingWait]:
    for number, question in machine.state.questions.items():
        yield PendingWait(
            kind="ask",
            place=machine.location(number),
            number=number,
            since=time_of(question.since),
            due=time_of(question.due) if question.due else None,
            title=question.title,
            asked=allowed_people(question),
        )


def _child_waits(machine: Machine) -> Iterator[PendingWait]:
    for number, child in machine.state.children.items():
        yield PendingWait(
            kind="child",
            place=machine.location(number),
            number=number,
            since=time_of(child.since),
            due=time_of(child.due) if child.due else None,
            run=child.run_id,
            workflow=child.workflow,
        )


def _patch_waits(machine: Machine) -> Iterator[PendingWait]:
    """Yield the patches that wait until they are allowed. The others are questions."""
    for number, patch in machine.state.asked.items():
        if number not in machine.state.reviews:
            yield PendingWait(
                kind="patch",
                place=machine.location(number),
                number=number,
                since=time_of(patch.since),
                due=time_of(patch.event.due) if patch.event.due else None,
                names=[patch.event.wait_at] if patch.event.wait_at else [],
                asked=[patch.event.by] if patch.event.by else [],
                title=patch.event.reason,
            )
