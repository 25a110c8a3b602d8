"""What an open run does right now: who works on it, how far it is, what it waits for."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.errors import RunUnreadable, StoreError
from weft.observe.diagnosis import PendingWait, Progress
from weft.observe.history import History
from weft.observe.progress import progress_of
from weft.observe.run_hosts import Abouts, Hosting, hosting_of, unoffered_version
from weft.observe.runs import read_run
from weft.observe.sentences import idle_sentence
from weft.observe.waits import waits_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService

HOSTED = Hosting(is_owned=True, is_offered=True)
EVENTS_READ_MAX = 50_000
"""What a run with a longer log waits for is not looked up for a list."""


class Activity(msgspec.Struct, frozen=True):
    """Where an open run stands."""

    hosting: Hosting = HOSTED
    progress: list[Progress] = []
    is_readable: bool = True


class ListedActivity(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of runs shows of one run. ``kind`` says what is known."""

    kind: Literal["unknown", "unreadable", "held", "unhosted", "waiting"] = "unknown"
    fault: str = ""
    """What a run that cannot be read waits for, if that is known."""
    missing_version: str = ""
    waits: list[PendingWait] = []
    progress: list[Progress] = []


async def activity_of(service: RunService, row: RunRow) -> Activity:
    """Read the state of a run and look up who works on it."""
    if row.ended_at is not None or row.fault is not None:
        return Activity()
    try:
        machine = await read_run(service, row) if row.seq else None
    except RunUnreadable:
        return Activity(is_readable=False)
    hosting = await hosting_of(service, row, machine)
    return Activity(hosting, progress_of(machine) if machine is not None else [])


async def listed_activity(service: RunService, row: RunRow, living: Abouts) -> ListedActivity:
    """Return what a list shows of a run. ``living``: the living hosts."""
    if row.fault is not None:
        return ListedActivity(kind="unreadable" if row.ended_at is None else "unknown")
    if row.ended_at is not None or row.seq > EVENTS_READ_MAX:
        return ListedActivity()
    if row.status == "held":
        return ListedActivity(kind="held")
    version = unoffered_version(row, living) if row.owner not in living and row.status != "paused" else ""
    if not row.seq:
        return ListedActivity(kind="unhosted", missing_version=version)
    try:
        machine = await read_run(service, row)
    except RunUnreadable as error:
        return ListedActivity(kind="unreadable", fault=str(error.context.get("waits", "")))
    except StoreError:
        return ListedActivity()
    waits = waits_of(machine, service.clock.now_ms())
    return ListedActivity(kind="waiting", missing_version=version, waits=waits, progress=progress_of(machine))


def note_idle(history: History, activity: Activity) -> None:
    """Note on open operations that nobody performs them, and why."""
    for number, queue in activity.hosting.idle.items():
        operation = history.operations.get(number)
        if operation is not None and operation.status == "open":
            operation.idle = idle_sentence(queue)


def forget_idle(history: History, activity: Activity) -> None:
    """Remove the notes of ``note_idle``."""
    for number in activity.hosting.idle:
        operation = history.operations.get(number)
        if operation is not None:
            operation.idle = ""
