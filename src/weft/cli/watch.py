"""Show a run live: redrawn on a terminal, and with a line per change elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner

from weft.cli.output import SafeText, age_text, console, failure_text, status_text, time_text, took, value_text
from weft.cli.show import print_end, print_header, status_line
from weft.cli.store_access import open_run
from weft.cli.tree import GLYPHS, draw_tree, waiting_text
from weft.observe.activity import Activity, activity_of, forget_idle, note_idle
from weft.observe.event_parts import EventPart
from weft.observe.explain import explain
from weft.observe.history import History, Operation
from weft.observe.sentences import unhosted_sentence
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import readable_events

LOOK_SECONDS = 0.1
HOSTS_SECONDS = 2.0
PROGRESS_MAX = 3
SPINNER_WIDTH = 3
PAGE = 500


async def watch_run(run: str, *, url: str | None, app: str | None) -> int:
    """Follow a run until it ends or is held, and print how it ended. Returns 1 if it did not complete."""
    async with open_run(run, url, app) as (service, row):
        out = console()
        history = History()
        await _catch_up(service, row, history)
        # Without a terminal, the status is not shown again below.
        out.print(
            SafeText(row.id, style="bold") if out.is_terminal else status_line(row, history, service.clock.now_ms())
        )
        await print_header(out, service, row, history)
        out.print()
        if out.is_terminal:
            await _draw(out, service, row, history)
        else:
            await _report_watched_run(out, service, row, history)
        last = await service.row(row.id)
        await print_end(out, service, last, history, await activity_of(service, last))
        return 0 if last.status == "completed" else 1


async def _catch_up(service: RunService, row: RunRow, history: History) -> list[tuple[EventPart, Operation | None]]:
    """Add the new events of the log to the history and return them. Stops at an event that cannot be read."""
    added: list[tuple[EventPart, Operation | None]] = []
    while True:
        page, _ = await readable_events(service.store.log, row, after=history.seq, limit=PAGE)
        added += [part for stored in page for part in history.add(stored)]
        if len(page) < PAGE:
            return added


async def _is_stuck(service: RunService, row: RunRow, history: History) -> bool:
    """Return whether the next event of the run cannot be read."""
    if row.fault is not None:
        return True
    return (
        history.seq < row.seq
        and (await readable_events(service.store.log, row, after=history.seq, limit=1))[1] is not None
    )


async def _draw(out: Console, service: RunService, row: RunRow, history: History) -> None:
    spinner = Spinner("dots")
    monitor = _RunMonitor(service)
    with Live(console=out, refresh_per_second=12, transient=False) as live:
        while True:
            await _catch_up(service, row, history)
            now = await service.row(row.id)
            await monitor.refresh(now, history)
            if history.ended is not None:
                live.update(draw_tree(history, row.id, service.clock.now_ms()))
                return
            live.update(monitor.picture(out, now, history, spinner))
            if monitor.is_stuck or await _is_stuck(service, now, history) or await _is_held(service, now):
                return
            await asyncio.sleep(LOOK_SECONDS)


async def _is_held(service: RunService, row: RunRow) -> bool:
    """Return whether a run is held for a person and has no mail that could change that."""
    return row.status == "held" and not await service.store.log.inbox(row.uid)


class _RunMonitor:
    """Reads the activity of a run when the run has changed, and at intervals to notice changes of its host."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._read_at: tuple[int, float] = (-1, 0.0)
        self._activity = Activity()

    @property
    def is_stuck(self) -> bool:
        """Whether the run cannot be read."""
        return not self._activity.is_readable

    async def refresh(self, row: RunRow, history: History) -> None:
        """Read the activity of the run if necessary, and mark its tasks that no worker performs in the history."""
        seq, at = self._read_at
        now = time.monotonic()
        if row.seq != seq or now - at > HOSTS_SECONDS:
            forget_idle(history, self._activity)
            self._activity = await activity_of(self._service, row)
            self._read_at = (row.seq, now)
        note_idle(history, self._activity)

    async def idle_reason(self, row: RunRow) -> str:
        """Explain why a run without a host makes no progress; empty if a host has it or will claim it."""
        hosting = self._activity.hosting
        if hosting.is_owned or row.ended_at is not None or row.status in ("held", "paused"):
            return ""
        if not row.seq:
            return f"pending: {(await explain(self._service, row)).summary}"
        return unhosted_sentence(row.workflow, hosting)

    def picture(self, out: Console, row: RunRow, history: History, spinner: Spinner) -> RenderableType:
        """Draw the tree of operations, and the state of the run below it."""
        now = self._service.clock.now_ms()
        # Lines beyond the screen would be drawn twice, so only the newest lines are shown until the end.
        tree = draw_tree(history, row.id, now, lines_max=max(3, out.size.height - 6))
        text = SafeText.assemble(status_text(row.status), f"  {_standing(row, history, now, self._activity)}")
        text.truncate(out.width - SPINNER_WIDTH, overflow="ellipsis")
        spinner.update(text=text)
        return Group(tree, spinner)


def _standing(row: RunRow, history: History, now: int, activity: Activity) -> str:
    """Describe the state of the run that the tree does not show."""
    if history.held:
        return history.held
    if row.status == "paused":
        return f"weft resume {row.id}"
    hosting = activity.hosting
    why = unhosted_sentence(row.workflow, hosting)
    if why:
        return why
    length = f"for {age_text(now - (history.started or row.created_at))}"
    return "  ".join([length, *map(str, activity.progress[:PROGRESS_MAX])])


async def _report_watched_run(out: Console, service: RunService, row: RunRow, history: History) -> None:
    """Print the recorded operations, then a line for each change of the run or its host."""
    monitor, idle = _RunMonitor(service), ""
    await monitor.refresh(row, history)
    for operation in history.current():
        out.print(_operation_line(operation, operation.ended or operation.started, row.id))
    while history.ended is None:
        for stored, changed in await _catch_up(service, row, history):
            for line in _changes(stored, changed, row.id, history):
                out.print(line)
        now = await service.row(row.id)
        await monitor.refresh(now, history)
        if monitor.is_stuck or await _is_stuck(service, now, history) or await _is_held(service, now):
            return
        before, idle = idle, await monitor.idle_reason(now)
        was_unhosted = bool(before) and not before.startswith("pending")
        resumed = "a process hosts it again" if was_unhosted and now.ended_at is None else ""
        if idle != before and (idle or resumed):
            out.print(SafeText(f"{time_text(service.clock.now_ms())}  {idle or resumed}"))
        if history.ended is None:
            await asyncio.sleep(LOOK_SECONDS)


def _changes(stored: EventPart, operation: Operation | None, run_id: str, history: History) -> Iterator[SafeText]:
    if operation is not None:
        yield _operation_line(operation, stored.at, run_id)
    elif b'"kind":"run_' in stored.body and history.ended is None:
        yield SafeText(f"{time_text(stored.at)}  {history.status}{f': {history.held}' if history.held else ''}")


def _operation_line(operation: Operation, at: int, run_id: str) -> SafeText:
    if operation.status == "open":
        what = waiting_text(operation, run_id)
    elif operation.failure is not None and operation.status == "failed":
        what = failure_text(operation.failure)
    else:
        result = value_text(operation.output)
        what = f"{operation.status}{f' in {took(operation.ended - operation.started)}' if operation.ended else ''}"
        what += f": {result}" if result != "null" else ""
    return SafeText(f"{time_text(at)}  {GLYPHS.get(operation.status, '–')} {operation.location}  {what}")
