"""Find runs in SQLite. Single rows are read on the caller's thread, larger results on another thread."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apsw

from weft.core.ids import INTERNAL_WORKFLOWS, Epoch, HostId, Millis, RunId, RunUid
from weft.core.start_rules import SINGLETON, SINGLETON_END
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import NEVER, OPEN_STATUSES, KeyRow, Page, RunRow
from weft.stores.rows import LAST_CHARACTER, NOT_DOOMED, json_text
from weft.stores.sqlite.mail import find_key_row
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import RUN_COLUMNS, run_row
from weft.stores.sqlite.run_search import count_runs, search_runs

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_WANTED = (
    "(workflow, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:workflows)) "
    f"AND fault IS NULL AND status IN ({_OPEN})"
)
_NOT_BEHIND = (
    f"(slot IS NULL OR seq > 0 OR NOT (slot >= '{SINGLETON}' AND slot < '{SINGLETON_END}') OR NOT EXISTS "
    "(SELECT 1 FROM runs AS older WHERE older.slot = runs.slot AND older.ended_at IS NULL AND older.num < runs.num))"
)
"""Leaves out a singleton that has not begun, while an older run with its slot is open."""
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


def _due_runs_query(index: str, rank: str, order: str) -> str:
    return (
        f"SELECT wake_at, {RUN_COLUMNS} FROM runs INDEXED BY {index} WHERE wake_at <= :now AND owner IS NULL "
        f"AND {rank} AND {_WANTED} AND {_UNLESS_HELD} AND {_NOT_BEHIND} ORDER BY {order} LIMIT :limit"
    )


def _with_mail(index: str, rank: str, order: str) -> str:
    return (
        f"SELECT mail_at, {RUN_COLUMNS} FROM runs INDEXED BY {index} WHERE mail_at IS NOT NULL AND owner IS NULL "
        # The start mail of a delayed start does not make the run due.
        f"AND {rank} AND (seq > 0 OR wake_at IS NULL OR wake_at <= :now) "
        f"AND {_WANTED} AND {_NOT_BEHIND} ORDER BY {order} LIMIT :limit"
    )


# Runs with a priority have indexes of their own, so that a long line of others does not hide them.
_UNOWNED = (
    _due_runs_query("runs_due", "priority = 0", "wake_at"),
    _with_mail("runs_mail", "priority = 0", "mail_at"),
    _with_mail("runs_mail_ranked", "priority <> 0", "priority DESC, mail_at"),
)
# Each priority by itself, highest first: many runs that sleep do not hide those with a lower priority that are due.
_NEXT_PRIORITY = (
    "SELECT max(priority) FROM runs INDEXED BY runs_due_ranked "
    "WHERE wake_at IS NOT NULL AND priority <> 0 AND priority < ?"
)
_ABOVE_ALL = 2**31
"""Is higher than any priority."""
_DUE_WITH_PRIORITY = _due_runs_query("runs_due_ranked", "priority <> 0 AND priority = :priority", "wake_at")
_ORPHANED = (_ORPHANED_IN_FLIGHT, _ORPHANED_DUE, _ORPHANED_WITH_MAIL)
_NEXT_WAKE = (
    f"SELECT wake_at FROM runs INDEXED BY runs_due WHERE wake_at IS NOT NULL AND owner IS NULL "
    f"AND {_WANTED} AND {_NOT_BEHIND} AND status <> 'held' ORDER BY wake_at LIMIT 1"
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
# Jumps from name to name in the index.
_WORKFLOWS = """
    WITH RECURSIVE names (name) AS (
        SELECT min(workflow) FROM runs WHERE workflow >= ?1
        UNION ALL
        SELECT (SELECT min(workflow) FROM runs WHERE workflow > name) FROM names WHERE name IS NOT NULL
    )
    SELECT name FROM names WHERE name < ?2 LIMIT ?3
"""


class SqliteDirectory:
    """The directory of a SQLite store."""

    def __init__(self, reader: SqliteReader) -> None:
        self._reader = reader

    async def find(self, id: RunId) -> RunRow | None:
        return self._reader.read(lambda connection: _read_row(connection, "id", id))

    async def row(self, uid: RunUid) -> RunRow | None:
        return self._reader.read(lambda connection: _read_row(connection, "uid", uid))

    async def search(self, query: RunQuery) -> Page:
        return await self._reader.read_in_thread(lambda connection: search_runs(connection, query))

    async def count(self, queries: Sequence[RunQuery], *, limit: int) -> Sequence[RunCount]:
        return await self._reader.read_in_thread(
            lambda connection: [count_runs(connection, query, limit) for query in queries]
        )

    async def workflows(self, prefix: str = "", *, limit: int) -> Sequence[str]:
        values = (prefix, prefix + LAST_CHARACTER, limit)
        return await self._reader.read_in_thread(
            lambda connection: [str(name) for (name,) in connection.execute(_WORKFLOWS, values)]
        )

    async def key(self, uid: RunUid, key: str) -> KeyRow | None:
        def work(connection: apsw.Connection) -> KeyRow | None:
            row = connection.execute("SELECT num FROM runs WHERE uid = ?", (uid,)).fetchone()
            return None if row is None else find_key_row(connection, row[0], key)

        return self._reader.read(work)

    async def claimable(
        self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> Sequence[RunRow]:
        values = {"workflows": json_text(workflows), "dead": json_text(dead), "now": now, "limit": limit}

        def work(connection: apsw.Connection) -> list[tuple[Any, ...]]:
            return [
                *_due_by_priority(connection, values),
                *(row for text in _claim_queries(dead) for row in connection.execute(text, values)),
            ]

        return _longest_waiting(await self._reader.read_in_thread(work), limit)

    async def owned(self, host: HostId) -> Mapping[RunUid, Epoch]:
        rows = await self._reader.read_in_thread(lambda connection: connection.execute(_OWNED, (host,)).fetchall())
        return {RunUid(str(uid)): Epoch(int(str(epoch))) for uid, epoch in rows}

    async def next_wake(self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId]) -> Millis | None:
        return await self._reader.read_in_thread(lambda connection: read_next_wake(connection, workflows, dead))

    async def counts(self, below: RunUid | None = None, *, limit: int = 0) -> Mapping[str, int]:
        text, values = (_COUNTS, (json_text(INTERNAL_WORKFLOWS),)) if below is None else (_COUNTS_BELOW, (below, limit))
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
    values = {"workflows": json_text(workflows), "dead": json_text(dead), "now": now, "limit": 1}
    if any(connection.execute(text, values).fetchone() is not None for text in _claim_queries(dead)):
        return True
    return next(_due_by_priority(connection, values), None) is not None


def _due_by_priority(connection: apsw.Connection, values: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the runs with a priority that are due: the highest priority first, and of each those due first."""
    left = int(values["limit"])
    priority = connection.execute(_NEXT_PRIORITY, (_ABOVE_ALL,)).get
    while priority is not None and left > 0:
        wanted = {**values, "priority": priority, "limit": left}
        for row in connection.execute(_DUE_WITH_PRIORITY, wanted):
            left -= 1
            yield row
        priority = connection.execute(_NEXT_PRIORITY, (priority,)).get


def read_next_wake(
    connection: apsw.Connection, workflows: Sequence[tuple[str, str]], dead: Sequence[HostId]
) -> Millis | None:
    """Return the earliest time at which a run without an owner, or of a dead host, becomes due."""
    values = {"workflows": json_text(workflows)}
    rows = [connection.execute(_NEXT_WAKE, values).fetchone()]
    rows += (connection.execute(_NEXT_WAKE_OF_OWNER, {**values, "owner": host}).fetchone() for host in dead)
    return min((Millis(row[0]) for row in rows if row is not None), default=None)


def _claim_queries(dead: Sequence[HostId]) -> tuple[str, ...]:
    return _UNOWNED if not dead else (*_UNOWNED, *_ORPHANED)


def _read_row(connection: apsw.Connection, column: str, value: str) -> RunRow | None:
    row = connection.execute(f"SELECT {RUN_COLUMNS} FROM runs WHERE {column} = ? AND {NOT_DOOMED}", (value,)).fetchone()
    return None if row is None else run_row(row)


def _longest_waiting(rows: Sequence[tuple[Any, ...]], limit: int) -> list[RunRow]:
    """Return each run once, from rows of the time since when a run waits and its columns.

    Those with the highest priority come first, then those that have waited longest.
    """
    waiting: dict[str, tuple[Any, ...]] = {}
    for row in rows:
        known = waiting.get(row[1])
        if known is None or row[0] < known[0]:
            waiting[row[1]] = row
    columns = RUN_COLUMNS.split(", ")
    created_at, priority = 1 + columns.index("created_at"), 1 + columns.index("priority")
    first = sorted(waiting.values(), key=lambda row: (-row[priority], row[0], row[created_at], row[1]))
    return [run_row(row[1:]) for row in first[:limit]]
