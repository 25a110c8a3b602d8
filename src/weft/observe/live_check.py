"""Check every open run of a store against the code of this process: ``weft check --live``, ``app.check_live``.

It reads only: nothing is claimed, written or performed, and snapshots are not trusted. It says whether the code fits
what is recorded. It cannot see what a run would do next.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from weft.core import events as e
from weft.core.ids import Millis, Seq
from weft.core.plurals import pluralize
from weft.errors import Corrupt, NotFound, Refused, RunUnreadable
from weft.observe.live_finding import HARMLESS, CheckedCode, LiveChange, LiveFinding, LiveRun
from weft.observe.styles import views_of
from weft.ports.run_query import RunQuery
from weft.ports.store import OPEN_STATUSES, RunRow
from weft.runtime.replays import fold_log
from weft.runtime.service import RunService
from weft.runtime.unreadable import naming_run_in_errors, unreadable_error

PAGE = 500
NEXT = "This is about what is recorded. What a run would do next cannot be seen."
_PLACES = ("at", "node", "token", "task", "entry", "child", "ask", "timer", "step", "item")
"""Fields of events that say where something happened."""


class OpenRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Which open runs to check."""

    workflow: str | None = None
    status: str | None = None
    since: Millis | None = None
    sample: int = 0
    """Of runs of one version with logs of equal length and the same last place: only so many newest and oldest."""


class LiveGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Open runs of one version with the same verdict about the same place."""

    workflow: str
    version: str
    verdict: str
    place: str
    count: int
    example: str
    """One of the runs."""
    recorded: str
    asked: str
    message: str
    file: str = ""
    """The bundle with the example, if bundles were saved."""


class LiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of open runs found. ``str()`` is the text that ``weft check --live`` prints."""

    checked: int
    left_out: int
    """How many runs a sample left out."""
    groups: Sequence[LiveGroup]

    @property
    def ok(self) -> bool:
        """Return whether every run that was checked goes on with this code."""
        return all(group.verdict in HARMLESS for group in self.groups)

    def __str__(self) -> str:
        left_out = f", {self.left_out:,} left out" if self.left_out else ""
        lines = [f"{pluralize(self.checked, 'open run')} checked{left_out}"]
        for group in self.groups:
            place = f" at {group.place}" if group.place else ""
            version = f" {group.version}" if group.version else ""
            lines.append(f"{group.count:,} {group.workflow}{version}: {group.verdict}{place}, such as {group.example}")
            if group.recorded:
                lines.append(f"    recorded: {group.recorded}")
                lines.append(f"    asked:    {group.asked}")
            if group.message:
                lines.append(f"    {group.message}")
        return "\n".join([*lines, NEXT])


async def check_live(
    service: RunService,
    code: CheckedCode,
    query: OpenRuns | None = None,
    *,
    change: LiveChange | None = None,
    tolerant: bool = False,
) -> LiveReport:
    """Check the open runs of a store against this code, with a change tried on each. Reads only.

    Raises BadPatch, BadGraph if the change is not valid in itself.
    """
    wanted = query or OpenRuns()
    rows = [row async for row in _open_rows(service, wanted)]
    chosen = await _sample_runs(service, rows, wanted.sample) if wanted.sample else rows
    groups: dict[tuple[str, str, str, str], LiveGroup] = {}
    for row in chosen:
        run = LiveRun(service=service, row=row, code=code, tolerant=tolerant, change=change or LiveChange())
        found = await _check(run)
        key = (row.workflow, row.version, found.verdict, found.place)
        known = groups.get(key)
        groups[key] = LiveGroup(
            workflow=row.workflow,
            version=row.version,
            verdict=found.verdict,
            place=found.place,
            count=known.count + 1 if known is not None else 1,
            example=known.example if known is not None else row.id,
            recorded=known.recorded if known is not None else found.recorded,
            asked=known.asked if known is not None else found.asked,
            message=known.message if known is not None else found.message,
        )
    ordered = sorted(groups.values(), key=lambda one: (one.verdict in HARMLESS, -one.count, one.workflow, one.place))
    return LiveReport(checked=len(chosen), left_out=len(rows) - len(chosen), groups=ordered)


async def _open_rows(service: RunService, wanted: OpenRuns) -> AsyncIterator[RunRow]:
    """Yield the open runs, newest first within each status. Weft's own runs are left out unless they are named."""
    for status in [wanted.status] if wanted.status is not None else OPEN_STATUSES:
        query = RunQuery(workflow=wanted.workflow, status=status, since=wanted.since, limit=PAGE)
        while True:
            page = await service.search(query)
            for row in page.rows:
                if row.ended_at is None:
                    yield row
            if page.cursor is None:
                break
            query = msgspec.structs.replace(query, after=page.cursor)


async def _sample_runs(service: RunService, rows: Sequence[RunRow], count: int) -> list[RunRow]:
    """Return the newest and oldest runs of each version, length of the log and last place."""
    alike: dict[tuple[object, ...], list[RunRow]] = {}
    for row in sorted(rows, key=lambda row: (-row.created_at, row.id)):
        alike.setdefault((row.workflow, row.version, row.seq, await _last_place(service, row)), []).append(row)
    chosen: list[RunRow] = []
    for group in alike.values():
        chosen += group[:count]
        chosen += group[max(count, len(group) - count) :]
    return chosen


async def _last_place(service: RunService, row: RunRow) -> str:
    """Return the kind of the last event of a run and where it happened."""
    if not row.seq:
        return ""
    try:
        stored = await service.store.log.events(row.uid, after=Seq(row.seq - 1), limit=1)
        event = e.decode(stored[0].body) if stored else None
    except Corrupt:
        return "unreadable"
    return f"{type(event).__name__} {[getattr(event, name, None) for name in _PLACES]}"


async def _check(run: LiveRun) -> LiveFinding:
    row = run.row
    if row.fault is not None:
        return _unreadable_finding(unreadable_error(row, row.fault))
    if not row.seq:
        known = row.workflow in run.code.startable() if not row.version else run.code.program(row.workflow, row.version)
        return LiveFinding() if known else _unknown_start(run)
    try:
        with naming_run_in_errors(row):
            await run.service.store.log.inbox(row.uid)
        return await views_of(row.style).check_live(run, await fold_log(run.service, row))
    except RunUnreadable as error:
        return _unreadable_finding(error)
    except NotFound:
        if await run.service.store.directory.row(row.uid) is not None:
            raise  # the version does not exist
        return LiveFinding()  # it was deleted meanwhile
    except Refused as error:
        return LiveFinding(verdict=error.code, message=error.message)  # its status does not allow the change


def _unreadable_finding(error: RunUnreadable) -> LiveFinding:
    """Return the finding about a run that goes on with no code before its stored data is mended."""
    return LiveFinding(verdict="unreadable", message=str(error))


def _unknown_start(run: LiveRun) -> LiveFinding:
    return LiveFinding(verdict="not hosted", message=f"There is no {run.row.workflow} here, and it has not begun.")
