"""Find runs for lists: by what people type, and by what runs wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from weft.errors import NotFound, RunUnreadable, StoreError
from weft.observe.activity import EVENTS_READ_MAX
from weft.observe.runs import read_run
from weft.observe.waits import waits_of
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import OPEN_STATUSES, Page, RunRow
from weft.runtime.run.append_extras import ASKING
from weft.runtime.service import RunService
from weft.stores.rows import make_cursor, parse_cursor

WaitsFor = Literal["person", "message", "time", "step", "child"]

SCAN = 20_000
"""How many runs are examined for one page."""
READ_MAX = 200
"""How many runs are read for one page to see what they wait for."""
NAMES_MAX = 20
"""How many workflows a beginning may stand for."""
_KINDS: Mapping[str, WaitsFor] = {
    "ask": "person",
    "patch": "person",
    "message": "message",
    "answer": "message",
    "sleep": "time",
    "retry": "time",
    "step": "step",
    "child": "child",
}


class RunSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search for runs: a query, the beginning of an id or of a workflow, and what the runs wait for."""

    query: RunQuery
    q: str = ""
    waits: Sequence[WaitsFor] = ()


async def find_runs(service: RunService, search: RunSearch) -> Page:
    """Return a page of runs, newest first. A page may be short, or empty, and still have a cursor."""
    queries = await queries_of(service, search)
    if not search.waits:
        return await _search_all(service, queries)
    return await _waiting(service, queries, search)


async def count_matches(service: RunService, search: RunSearch, *, limit: int) -> RunCount:
    """Return how many runs a search finds, up to a limit."""
    if search.waits:
        query = msgspec.structs.replace(search.query, limit=limit)
        page = await find_runs(service, msgspec.structs.replace(search, query=query))
        return RunCount(len(page.rows), page.cursor is not None)
    queries = await queries_of(service, search)
    # A run may be found by its id and by its workflow.
    prefixed = [query for query in queries if search.q and query.id_prefix != search.query.id_prefix]
    named = [query for query in queries if query not in prefixed]
    both = [msgspec.structs.replace(query, id_prefix=one.id_prefix) for one in prefixed for query in named]
    counts = list(await service.store.directory.count([*queries, *both], limit=limit))
    total = sum(one.count for one in counts[: len(queries)]) - sum(one.count for one in counts[len(queries) :])
    return RunCount(min(total, limit), total > limit or any(one.more for one in counts))


async def queries_of(service: RunService, search: RunSearch) -> Sequence[RunQuery]:
    """Return the queries that together find what a search is for. A run may be found by several of them."""
    query = msgspec.structs.replace(search.query, scan=SCAN)
    if search.waits:
        query = _open(query, search.waits)
    if not search.q:
        return [query]
    found: list[RunQuery] = []
    prefix = _joint_prefix(query.id_prefix or "", search.q)
    if prefix is not None:
        found.append(msgspec.structs.replace(query, id_prefix=prefix))
    names = await service.store.directory.workflows(search.q, limit=NAMES_MAX)
    return [*found, *(msgspec.structs.replace(query, workflow=one) for one in names if query.workflow in (None, one))]


def _open(query: RunQuery, waits: Sequence[WaitsFor]) -> RunQuery:
    """Only open runs wait. Those that ask people are marked."""
    statuses = [status for status in OPEN_STATUSES if not query.any_status or status in query.any_status]
    where = {**query.where, ASKING: True} if list(waits) == ["person"] else query.where
    return msgspec.structs.replace(query, status=None, statuses=statuses or ["none"], where=where)


def _joint_prefix(a: str, b: str) -> str | None:
    """Return the longer of two prefixes if it begins with the other; None if no text can have both."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    return longer if longer.startswith(shorter) else None


async def _search_all(service: RunService, queries: Sequence[RunQuery]) -> Page:
    """Return one page of what several queries find."""
    pages = [await service.search(query) for query in queries]
    return join_pages(pages, queries[0].limit) if queries else Page([], None)


def join_pages(pages: Iterable[Page], limit: int) -> Page:
    """Return one page from pages of several searches, each run once."""
    found = list(pages)
    # Below the highest end of a page, that search may have runs that are not known yet.
    ends = [parse_cursor(page.cursor) for page in found if page.cursor is not None]
    end = max(ends, default=None)
    rows = {row.uid: row for page in found for row in page.rows if end is None or _position(row) >= end}
    newest = sorted(rows.values(), key=_position, reverse=True)
    if len(newest) > limit:
        last = newest[limit - 1]
        return Page(newest[:limit], make_cursor(last.created_at, last.uid))
    return Page(newest, f"{end[0]}.{end[1]}" if end is not None else None)


async def _waiting(service: RunService, queries: Sequence[RunQuery], search: RunSearch) -> Page:
    """Return runs that wait for something, reading at most ``READ_MAX`` runs."""
    wanted, found, read, limit = set(search.waits), [], 0, search.query.limit
    after = search.query.after
    while read < READ_MAX:
        page = await _search_all(service, [msgspec.structs.replace(query, after=after) for query in queries])
        for row in page.rows:
            read += 1
            after = make_cursor(row.created_at, row.uid)
            if wanted & await kinds_of_waits(service, row):
                found.append(row)
            if len(found) == limit or read >= READ_MAX:
                is_last = row is page.rows[-1] and page.cursor is None
                return Page(found, None if is_last else after)
            await asyncio.sleep(0)  # reading many runs must not block the loop
        after = page.cursor
        if after is None or not page.rows:
            return Page(found, after)
    return Page(found, after)


async def kinds_of_waits(service: RunService, row: RunRow) -> set[WaitsFor]:
    """Return what an open run waits for; nothing if it cannot be read, or if reading it would take too long."""
    if row.fault is not None or row.ended_at is not None or not row.seq or row.seq > EVENTS_READ_MAX:
        return set()
    try:
        machine = await read_run(service, row)
    except (RunUnreadable, NotFound, StoreError):
        return set()
    kinds = {wait.kind for wait in waits_of(machine, service.clock.now_ms())}
    return {_KINDS[kind] for kind in kinds if kind in _KINDS}


def _position(row: RunRow) -> tuple[Any, str]:
    return row.created_at, row.uid
