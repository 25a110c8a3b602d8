"""Find runs in SQLite. Single rows are read on the caller's thread, larger results on another thread."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import INTERNAL_WORKFLOWS, Epoch, HostId, Millis, RunId, RunUid
from weft.ports.store import IMPORTED, NEVER, OPEN_STATUSES, KeyRow, Page, RunQuery, RunRow
from weft.stores.rules import LAST_CHARACTER, NOT_DOOMED, canonical_json, make_cursor, parse_cursor
from weft.stores.sqlite.mail import read_key
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import RUN_COLUMNS, run_row

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_WANTED = (
    "(workflow, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:workflows)) "
    f"AND fault IS NULL AND status IN ({_OPEN})"
)
_UNLESS_HELD = "(status <> 'held' OR mail_at IS NOT NULL)"

# There are five reasons to claim a run. Each has its own statement and index, so that each statement can stop at LIMIT.
# The indexes are named, because SQLite does not know how the values are distributed and would visit every open run.
_DEAD_OWNER = "owner IS NOT NULL AND owner IN (SELECT value FROM json_each(:dead))"
_ORPHANED_IN_FLIGHT = (
    f"SELECT updated_at, {RUN_COLUMNS} FROM runs INDEXED BY runs_owned "
    f"WHERE {_DEAD_OWNER} AND idle_until IS NULL AND {_WANTED} AND {_UNLESS_HELD} "
    f"ORDER BY updated_at, created_at, uid LIMIT :limit"
)
_ORPHANED_DUE = (
    f"SELECT idle_until, {RUN_COLUMNS} FROM runs INDEXED BY runs_owned "
    f"WHERE {_DEAD_OWNER} AND idle_until <= :now AND {_WANTED} AND {_UNLESS_HELD} "
    f"ORDER BY idle_until, created_at, uid LIMIT :limit"
)
_ORPHANED_WITH_MAIL = (
    f"SELECT mail_at, {RUN_COLUMNS} FROM runs INDEXED BY runs_mail "
    f"WHERE mail_at IS NOT NULL AND {_DEAD_OWNER} AND {_WANTED} ORDER BY mail_at LIMIT :limit"
)
_DUE = (
    f"SELECT wake_at, {RUN_COLUMNS} FROM runs INDEXED BY runs_due WHERE wake_at <= :now AND owner IS NULL "
    f"AND {_WANTED} AND {_UNLESS_HELD} ORDER BY wake_at LIMIT :limit"
)
_WITH_MAIL = (
    f"SELECT mail_at, {RUN_COLUMNS} FROM runs INDEXED BY runs_mail WHERE mail_at IS NOT NULL AND owner IS NULL "
    # The start mail of a delayed start does not make the run due.
    f"AND (seq > 0 OR wake_at IS NULL OR wake_at <= :now) AND {_WANTED} ORDER BY mail_at LIMIT :limit"
)
_UNOWNED = (_DUE, _WITH_MAIL)
_ORPHANED = (_ORPHANED_IN_FLIGHT, _ORPHANED_DUE, _ORPHANED_WITH_MAIL)
_NEXT_WAKE = (
    f"SELECT wake_at FROM runs INDEXED BY runs_due WHERE wake_at IS NOT NULL AND owner IS NULL "
    f"AND {_WANTED} AND status <> 'held' ORDER BY wake_at LIMIT 1"
)
# For one host, because the index sorts by ``idle_until`` only within an owner.
_NEXT_WAKE_OF_OWNER = (
    f"SELECT idle_until FROM runs INDEXED BY runs_owned WHERE owner IS NOT NULL AND owner = :owner "
    f"AND idle_until < {NEVER} AND {_WANTED} AND status <> 'held' ORDER BY idle_until LIMIT 1"
)
_OWNED = "SELECT uid, epoch FROM runs WHERE owner = ? AND fault IS NULL"


# Each is read from an index: all runs, less Weft's own.
_COUNTS = (
    "SELECT status, sum(n) FROM (SELECT status, count(*) AS n FROM runs GROUP BY status "
    "UNION ALL SELECT status, -count(*) FROM runs WHERE workflow IN (SELECT value FROM json_each(?)) GROUP BY status) "
    f"GROUP BY status HAVING sum(n) > 0 AND {NOT_DOOMED}"
)
_COUNTS_BELOW = (
    "WITH RECURSIVE below (uid, status) AS ("
    "SELECT uid, status FROM runs WHERE parent = ? AND ended_at IS NULL "
    "UNION ALL SELECT r.uid, r.status FROM below b JOIN runs r ON r.parent = b.uid WHERE r.ended_at IS NULL) "
    "SELECT status, count(*) FROM (SELECT status FROM below LIMIT ?) AS counted GROUP BY status"
)
_VERSIONS = (
    f"SELECT workflow, version, count(*) FROM runs WHERE status IN ({_OPEN}) AND +id >= ? AND +id < ? "
    "GROUP BY workflow, version"
)


class SqliteDirectory:
    """The directory of a SQLite store."""

    def __init__(self, reader: SqliteReader) -> None:
        self._reader = reader

    async def find(self, id: RunId) -> RunRow | None:
        return self._reader.read(lambda connection: _read_row(connection, "id", id))

    async def row(self, uid: RunUid) -> RunRow | None:
        return self._reader.read(lambda connection: _read_row(connection, "uid", uid))

    async def search(self, query: RunQuery) -> Page:
        conditions, values = _conditions(query)
        where = " AND ".join(conditions)
        text = f"SELECT {RUN_COLUMNS} FROM runs WHERE {where} ORDER BY created_at DESC, uid DESC LIMIT ?"
        rows = await self._reader.read_in_thread(
            lambda connection: [run_row(row) for row in connection.execute(text, (*values, query.limit + 1))]
        )
        page = rows[: query.limit]
        return Page(page, make_cursor(page[-1].created_at, page[-1].uid) if len(rows) > query.limit else None)

    async def key(self, uid: RunUid, key: str) -> KeyRow | None:
        def work(connection: apsw.Connection) -> KeyRow | None:
            row = connection.execute("SELECT num FROM runs WHERE uid = ?", (uid,)).fetchone()
            return None if row is None else read_key(connection, row[0], key)

        return self._reader.read(work)

    async def claimable(
        self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> Sequence[RunRow]:
        values = {"workflows": _json(workflows), "dead": _json(dead), "now": now, "limit": limit}

        def work(connection: apsw.Connection) -> list[tuple[Any, ...]]:
            return [row for text in _reasons(dead) for row in connection.execute(text, values)]

        return _longest_waiting(await self._reader.read_in_thread(work), limit)

    async def owned(self, host: HostId) -> Mapping[RunUid, Epoch]:
        rows = await self._reader.read_in_thread(lambda connection: connection.execute(_OWNED, (host,)).fetchall())
        return {RunUid(str(uid)): Epoch(int(str(epoch))) for uid, epoch in rows}

    async def next_wake(self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId]) -> Millis | None:
        return await self._reader.read_in_thread(lambda connection: read_next_wake(connection, workflows, dead))

    async def counts(self, below: RunUid | None = None, *, limit: int = 0) -> Mapping[str, int]:
        text, values = (_COUNTS, (_json(INTERNAL_WORKFLOWS),)) if below is None else (_COUNTS_BELOW, (below, limit))
        rows = await self._reader.read_in_thread(lambda connection: connection.execute(text, values).fetchall())
        return {str(status): int(str(count)) for status, count in rows}

    async def open_versions(self, id_prefix: str = "") -> Mapping[tuple[str, str], int]:
        values = (id_prefix, id_prefix + LAST_CHARACTER)
        rows = await self._reader.read_in_thread(lambda connection: connection.execute(_VERSIONS, values).fetchall())
        return {(str(workflow), str(version)): int(str(count)) for workflow, version, count in rows}


def is_any_claimable(
    connection: apsw.Connection, workflows: Sequence[tuple[str, str]], dead: Sequence[HostId], now: Millis
) -> bool:
    """Return whether there are runs that ``claimable`` would return."""
    values = {"workflows": _json(workflows), "dead": _json(dead), "now": now, "limit": 1}
    return any(connection.execute(text, values).fetchone() is not None for text in _reasons(dead))


def read_next_wake(
    connection: apsw.Connection, workflows: Sequence[tuple[str, str]], dead: Sequence[HostId]
) -> Millis | None:
    """Return the earliest time at which a run without an owner, or of a dead host, becomes due."""
    values = {"workflows": _json(workflows)}
    rows = [connection.execute(_NEXT_WAKE, values).fetchone()]
    rows += (connection.execute(_NEXT_WAKE_OF_OWNER, {**values, "owner": host}).fetchone() for host in dead)
    return min((Millis(row[0]) for row in rows if row is not None), default=None)


def _reasons(dead: Sequence[HostId]) -> tuple[str, ...]:
    return _UNOWNED if not dead else (*_UNOWNED, *_ORPHANED)


def _read_row(connection: apsw.Connection, column: str, value: str) -> RunRow | None:
    row = connection.execute(f"SELECT {RUN_COLUMNS} FROM runs WHERE {column} = ? AND {NOT_DOOMED}", (value,)).fetchone()
    return None if row is None else run_row(row)


def _json(value: Sequence[Any]) -> str:
    return msgspec.json.encode(value).decode()


def _conditions(query: RunQuery) -> tuple[list[str], list[Any]]:
    parts: list[tuple[str, tuple[Any, ...]]] = [(NOT_DOOMED, ())]
    if query.workflow is not None:
        parts.append(("workflow = ?", (query.workflow,)))
    if query.leaves_out:
        # The plus keeps SQLite from using the index on workflows: few runs are left out.
        parts.append((f"+workflow NOT IN ({', '.join('?' * len(query.leaves_out))})", tuple(query.leaves_out)))
    if query.status is not None:
        parts.append(("status = ?", (query.status,)))
    if query.hides_imported:
        parts.append(("+status <> ?", (IMPORTED,)))
    if query.since is not None:
        parts.append(("created_at >= ?", (query.since,)))
    if query.parent is not None:
        parts.append(("parent = ?", (query.parent,)))
    if query.id_prefix is not None:
        # Unlike LIKE, a range uses the index on ids and has no special characters.
        parts.append(("id >= ? AND id < ?", (query.id_prefix, query.id_prefix + LAST_CHARACTER)))
    for name, value in query.where.items():
        text = "num IN (SELECT run FROM attributes WHERE name = ? AND value = ?)"
        parts.append((text, (name, canonical_json(value))))
    if query.after is not None:
        parts.append(("(created_at, uid) < (?, ?)", parse_cursor(query.after)))
    return [text for text, _ in parts], [value for _, values in parts for value in values]


def _longest_waiting(rows: Sequence[tuple[Any, ...]], limit: int) -> list[RunRow]:
    """Return each run once, longest waiting first, from rows of the time since when a run waits and its columns."""
    waiting: dict[str, tuple[Any, ...]] = {}
    for row in rows:
        known = waiting.get(row[1])
        if known is None or row[0] < known[0]:
            waiting[row[1]] = row
    created_at = 1 + RUN_COLUMNS.split(", ").index("created_at")
    first = sorted(waiting.values(), key=lambda row: (row[0], row[created_at], row[1]))
    return [run_row(row[1:]) for row in first[:limit]]
