"""The current activity of an open run: who works on it, its progress, and what it waits for."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.errors import RunUnreadable, StoreError
from weft.observe.diagnosis import PendingWait, Progress
from weft.observe.history import History
from weft.observe.progress import progress_of
from weft.observe.run_hosts import Hosting, LiveHosts, hosting_of, unoffered_version
from weft.observe.runs import read_run
from weft.observe.sentences import idle_sentence, missing_sentence, start_words, wait_sentence
from weft.observe.start_wait import start_wait, starts_at
from weft.observe.waits import waits_of
from weft.ports.store import RunRow
from weft.runtime.service import RunService

HOSTED = Hosting(is_owned=True, is_offered=True)
UNREADABLE = "its log cannot be read"
WAITS_MAX = 2
"""How many of the things that a run waits for are named in a list."""
EVENTS_READ_MAX = 50_000
"""A list does not show what a run with a longer log waits for, because reading the run would take too long."""


class Activity(msgspec.Struct, frozen=True):
    """Who hosts an open run, and its progress."""

    hosting: Hosting = HOSTED
    progress: list[Progress] = []
    is_readable: bool = True


class ListedActivity(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of runs shows about one run. ``kind`` says which of the other fields are set."""

    kind: Literal["unknown", "unreadable", "held", "unhosted", "waiting"] = "unknown"
    fault: str = ""
    """What a run that cannot be read waits for, if it is known."""
    missing_version: str = ""
    start: str = ""
    """What a run that has not begun waits for; empty if it only waits for a host."""
    waits: list[PendingWait] = []
    progress: list[Progress] = []


async def activity_of(service: RunService, row: RunRow) -> Activity:
    """Read the state of a run and find its hosts."""
    if row.ended_at is not None or row.fault is not None:
        return Activity()
    try:
        machine = await read_run(service, row) if row.seq else None
    except RunUnreadable:
        return Activity(is_readable=False)
    hosting = await hosting_of(service, row, machine)
    return Activity(hosting, progress_of(machine) if machine is not None else [])


async def listed_activity(service: RunService, row: RunRow, live: LiveHosts) -> ListedActivity:
    """Return what a list shows about a run. ``live`` are the live hosts."""
    if row.fault is not None:
        return ListedActivity(kind="unreadable" if row.ended_at is None else "unknown")
    if row.ended_at is not None or row.seq > EVENTS_READ_MAX:
        return ListedActivity()
    if row.status == "held":
        return ListedActivity(kind="held")
    version = unoffered_version(row, live) if row.owner not in live and row.status != "paused" else ""
    if not row.seq:
        start = start_words(await start_wait(service, row), starts_at(row, service.clock.now_ms()))
        return ListedActivity(kind="unhosted", missing_version=version, start=start)
    try:
        machine = await read_run(service, row)
    except RunUnreadable as error:
        return ListedActivity(kind="unreadable", fault=str(error.context.get("waits", "")))
    except StoreError:
        return ListedActivity()
    waits = waits_of(machine, service.clock.now_ms())
    return ListedActivity(kind="waiting", missing_version=version, waits=waits, progress=progress_of(machine))


def waits_text(row: RunRow, activity: ListedActivity) -> str:
    """Describe what a run in a list waits for, in a few words."""
    missing = missing_sentence(row.workflow, activity.missing_version) if activity.missing_version else ""
    match activity.kind:
        case "unreadable":
            return activity.fault or UNREADABLE
        case "held":
            return f"you: weft explain {row.id}"
        case "unhosted":
            return missing or activity.start or "a host"
        case "waiting":
            more = len(activity.waits) - WAITS_MAX
            waits = ", ".join(map(wait_sentence, activity.waits[:WAITS_MAX]))
            return missing or waits + (f" and {more} more" if more > 0 else "")
        case "unknown":
            return ""


def note_idle(history: History, activity: Activity) -> None:
    """Mark open operations that no worker performs, with the reason."""
    for number, task in activity.hosting.idle.items():
        operation = history.operations.get(number)
        if operation is not None and operation.status == "open":
            operation.idle = idle_sentence(task)


def forget_idle(history: History, activity: Activity) -> None:
    """Remove the marks that ``note_idle`` made."""
    for number in activity.hosting.idle:
        operation = history.operations.get(number)
        if operation is not None:
            operation.idle = ""
