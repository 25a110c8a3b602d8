"""The short path of an actor: a plain step succeeds, and the next one begins.

This path records the same events and causes the same effects as ``Actor`` would. Everything that is not plain is left
to ``Actor``. Tests play the same runs with and without this path and compare the logs.
"""

from __future__ import annotations

from typing import Any, Protocol

from weft.core import commands as c
from weft.core import events as e
from weft.core.code import plain
from weft.core.code.state import Entry
from weft.core.ids import Millis
from weft.core.run.env import Env
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.run.ports import RunPorts


class PlainRun(Protocol):
    """The parts of a run in memory that plain steps need."""

    ports: RunPorts
    reading: Any
    machine: Any
    driver: Any
    now_ms: Millis
    pending: bool
    fetched: dict[str, Any]

    def env(self) -> Env: ...

    def open_draft(self) -> Draft: ...

    def advance(self, driver: Any) -> None: ...

    def follow(self) -> None: ...


def take_plain(run: PlainRun, posted: PendingCommand) -> bool:
    """Record the success of a task and let the code continue. Returns False, recording nothing, if it is not plain."""
    command, driver = posted.command, run.driver
    assert isinstance(command, c.ReportTaskSucceeded)
    if run.pending or posted.mail_id or posted.key is not None or run.machine.state.status != "running":
        return False
    draft = run.open_draft()  # opened before the event is recorded, because it begins after the last event
    if driver is None:
        return _take_success(run, posted, command, draft)
    event = plain.take_success(run.machine.style, command, run.now_ms)
    if event is None:
        return False
    draft.record(e.encode(event), run.now_ms)
    draft.posted.append(posted)
    run.advance(driver)
    return True


def _take_success(run: PlainRun, posted: PendingCommand, report: c.ReportTaskSucceeded, draft: Draft) -> bool:
    """Record the success of a task in a run without code, and what follows."""
    progress = run.machine.take_success(report, run.env())
    if progress is None:
        return False
    now, encode = run.now_ms, e.encode
    for event in progress.events:
        draft.record(encode(event), now)
    draft.effects.extend(progress.effects)
    draft.posted.append(posted)
    if run.fetched or not progress.rests:
        run.follow()
    return True


def schedule_plain(run: PlainRun, ask: c.ScheduleTask) -> Entry | None:
    """Record a task of the code. Returns None if it is not plain; nothing was recorded then."""
    if run.pending or run.reading is not None or not run.ports.short_path:
        return None
    draft, now = run.open_draft(), run.now_ms
    scheduled = plain.schedule_task(run.machine.style, ask, now)
    if scheduled is None:
        return None
    event, entry, effect = scheduled
    draft.record(e.encode(event), now)
    draft.effects.append(effect)
    return entry
