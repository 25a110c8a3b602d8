"""What a run does right now, in words: how far it is, what it performs and waits for, what nobody performs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from weft.cli.output import age
from weft.core.decider import Machine
from weft.errors import RunUnreadable
from weft.observe.diagnosis import Progress
from weft.observe.history import History
from weft.observe.hosting import Hosting, hosting_of
from weft.observe.progress import progress_of
from weft.observe.runs import read_run
from weft.observe.sentences import idle_sentence, wait_sentence
from weft.observe.waits import waits_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService

HOSTED = Hosting(is_owned=True, is_offered=True)
PARTS_MAX = 3


class Activity(msgspec.Struct, frozen=True):
    """Where an open run stands."""

    hosting: Hosting = HOSTED
    progress: list[Progress] = []
    is_readable: bool = True


async def activity_of(service: RunService, row: RunRow) -> Activity:
    """Read the state of a run and look who works on it."""
    if row.ended_at is not None or row.fault is not None:
        return Activity()
    try:
        machine = await read_run(service, row) if row.seq else None
    except RunUnreadable:
        return Activity(is_readable=False)
    hosting = await hosting_of(service, row, machine)
    return Activity(hosting, progress_of(machine) if machine is not None else [])


def note_idle(history: History, activity: Activity) -> None:
    """Say of open tasks that nobody performs them, and why."""
    for number, queue in activity.hosting.idle.items():
        operation = history.operations.get(number)
        if operation is not None and operation.status == "open":
            operation.idle = idle_sentence(queue)


def forget_idle(history: History, activity: Activity) -> None:
    """Take back what ``note_idle`` said."""
    for number in activity.hosting.idle:
        operation = history.operations.get(number)
        if operation is not None:
            operation.idle = ""


def summary(machine: Machine, now: int) -> str:
    """What a run does, in one line: "naps 142 of 500; charge, attempt 2 of 4 after OSError: down"."""
    return "; ".join([*(str(one) for one in progress_of(machine)[:PARTS_MAX]), *_parts(machine, now)])


def _parts(machine: Machine, now: int) -> Iterator[str]:
    """The newest tasks and waits. Items of a map or fan-out are many of a kind: of each kind one is told."""
    told: dict[str, str] = {}
    tasks = sorted(machine.state.tasks.items(), key=lambda item: -item[1].attempt)
    for _, task in tasks:
        attempts = ""
        if task.last is not None:
            what = task.last.message.partition("\n")[0][:80]
            attempts = f", attempt {task.attempt} of {task.policy.attempts_max} after {task.last.type}: {what}"
        told.setdefault(task.step, f"{task.step}{attempts}, {age(now - task.since)}")
    if not machine.state.tasks:
        for what in map(wait_sentence, waits_of(machine, now)):
            told.setdefault(what, f"waits for {what}")
    parts = list(told.values())
    yield from parts[:PARTS_MAX]
    if len(parts) > PARTS_MAX:
        yield f"{len(parts) - PARTS_MAX} more"
