"""Lists of runs, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from weft.core.durations import duration_ms
from weft.core.ids import Millis, RunId
from weft.observe.run_lines import RunLine, read_run_lines
from weft.observe.run_search import RunSearch, count_matches, find_runs
from weft.ports.run_query import RunQuery
from weft.ports.store import OPEN_STATUSES, OVER_STATUSES
from weft.runtime.run.append_extras import FORKED_FROM
from weft.runtime.service import RunService
from weft.server import views
from weft.server.request import ApiCall

COUNT_MAX = 10_000
"""Counts are exact up to here."""
WORKFLOWS_MAX = 100
HOUR_MS = 3_600_000
HOURS_MAX = 72
CountBy = Literal["status", "workflow", "hour"]


class CountsQuery(views.RunsFilter, frozen=True, kw_only=True):
    """What to count by, and a filter for runs.

    By status, runs of all statuses are counted. By hour, those of the last day unless ``since`` says otherwise.
    """

    by: CountBy = "status"


class CountView(msgspec.Struct, frozen=True, kw_only=True):
    """The number of runs in a group. With ``more``, there are at least as many, because not all were examined."""

    key: str
    """The status, the workflow, or the beginning of the hour."""
    count: int
    more: bool
    failed: int
    """How many of them have failed."""


class Counts(msgspec.Struct, frozen=True):
    """The number of runs by group: those that are not empty, and hours in order, also empty ones."""

    by: str
    counts: list[CountView]


async def list_runs(call: ApiCall) -> views.Runs:
    """Return a page of runs, newest first."""
    asked = call.query_as(views.RunsQuery)
    search = await _search(call.service, asked)
    query = msgspec.structs.replace(search.query, limit=asked.limit, after=asked.cursor)
    page = await find_runs(call.service, msgspec.structs.replace(search, query=query))
    return views.Runs([_listed_run(line) for line in await read_run_lines(call.service, page.rows)], page.cursor)


def _listed_run(line: RunLine) -> views.ListedRun:
    view = views.run_view(line.row)
    failure = line.failure
    return views.ListedRun(
        **{name: getattr(view, name) for name in view.__struct_fields__},
        parent=line.parent,
        root=line.root,
        failure=views.BriefFailure(failure.type, failure.message, failure.location) if failure is not None else None,
    )


async def _search(service: RunService, asked: views.RunsFilter) -> RunSearch:
    """Return the search of a filter. Raises NotFound, BadDuration."""
    parent = (await service.row(RunId(asked.parent))).uid if asked.parent is not None else None
    where = dict(_read_pair(text) for text in asked.where)
    if asked.forks is not None:
        where[FORKED_FROM] = (await service.row(RunId(asked.forks))).uid
    statuses: Sequence[str] = list(dict.fromkeys(asked.status))
    changed_before = None
    if asked.unchanged is not None:
        changed_before = Millis(service.clock.now_ms() - duration_ms(asked.unchanged))
        statuses = statuses or OPEN_STATUSES
    query = RunQuery(
        workflow=asked.workflow,
        statuses=statuses,
        style=asked.style,
        version=asked.version,
        since=_millis(asked.since),
        until=_millis(asked.until),
        changed_before=changed_before,
        where=where,
        id_prefix=asked.prefix,
        parent=parent,
        faulty=asked.fault,
        internal=asked.all,
    )
    return RunSearch(query=query, q=asked.q, waits=asked.waits)


def _millis(at: datetime | None) -> Millis | None:
    return Millis(int(at.timestamp() * 1000)) if at is not None else None


def _read_pair(text: str) -> tuple[str, Any]:
    """Read ``name=value``; the value is JSON if it can be read as JSON."""
    name, _, value = text.partition("=")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


# --- counts ------------------------------------------------------------------------------------------------------


async def count_runs(call: ApiCall) -> Counts:
    """Return how many runs there are, by status, workflow or hour."""
    asked, service = call.query_as(CountsQuery), call.service
    search = await _search(service, asked)
    counts = [await _group(service, key, one) for key, one in (await _groups(service, search, asked.by)).items()]
    return Counts(asked.by, counts if asked.by == "hour" else [one for one in counts if one.count])


async def _groups(service: RunService, search: RunSearch, by: CountBy) -> dict[str, RunSearch]:
    """Return the search for each group."""
    match by:
        case "status":
            return _by_status(search)
        case "hour":
            return _by_hour(search, service.clock.now_ms())
        case "workflow":
            wanted = search.query.workflow
            names = await service.store.directory.workflows(wanted or "", limit=WORKFLOWS_MAX)
            hidden = search.query.leaves_out
            return {
                name: _narrow_search(search, workflow=name)
                for name in names
                if wanted in (None, name) and name not in hidden
            }


def _narrow_search(search: RunSearch, **fields: Any) -> RunSearch:
    return msgspec.structs.replace(search, query=msgspec.structs.replace(search.query, **fields))


def _by_status(search: RunSearch) -> dict[str, RunSearch]:
    """Return the search for each status, also for those that are not asked for: a list offers them as filters."""
    return {status: _narrow_search(search, statuses=[status]) for status in (*OPEN_STATUSES, *OVER_STATUSES)}


def _by_hour(search: RunSearch, now: int) -> dict[str, RunSearch]:
    """Return the search for each hour of the last day, or of the time that is asked for."""
    query = search.query
    until = min(now + 1, query.until or now + 1)
    last = (until - 1) // HOUR_MS
    first = query.since // HOUR_MS if query.since is not None else last - 23
    return {
        views.required_time(hour * HOUR_MS).isoformat().replace("+00:00", "Z"): _narrow_search(
            search,
            since=Millis(max(hour * HOUR_MS, query.since or 0)),
            until=Millis(min((hour + 1) * HOUR_MS, query.until or (hour + 1) * HOUR_MS)),
        )
        for hour in range(max(first, last - HOURS_MAX + 1), last + 1)
    }


async def _group(service: RunService, key: str, search: RunSearch) -> CountView:
    statuses = search.query.any_status
    total = await count_matches(service, search, limit=COUNT_MAX)
    failed = 0
    if total.count and list(statuses) == ["failed"]:
        failed = total.count
    elif total.count and (not statuses or "failed" in statuses):
        failed = (await count_matches(service, _narrow_search(search, statuses=["failed"]), limit=COUNT_MAX)).count
    return CountView(key=key, count=total.count, more=total.more, failed=failed)
