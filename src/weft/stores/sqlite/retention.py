"""Delete and keep runs in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.ports.retention import (
    DOOMED,
    AuditEntry,
    Cleared,
    DoomOutcome,
    DoomResult,
    DoomRule,
    EndedPage,
    EndedQuery,
    EndedRun,
    StoreSize,
)
from weft.ports.store import OPEN_STATUSES
from weft.stores.removal import DOOMED_UID, RUNS_PER_CLEAR, TreeRun, judge_doom, with_counts, with_sums
from weft.stores.rows import LAST_CHARACTER, json_text, make_cursor, parse_cursor
from weft.stores.sqlite.holds import write_entry
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import unindex_attributes
from weft.stores.sqlite.writer import Writer

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_TREES = (
    "WITH RECURSIVE tree (root, uid) AS "
    "(SELECT r.uid, r.uid FROM json_each(?1) asked CROSS JOIN runs r ON r.uid = asked.value "
    "UNION ALL SELECT t.root, r.uid FROM tree t CROSS JOIN runs r ON r.parent = t.uid) "
    "SELECT t.root, r.uid, r.id, r.parent, r.status, r.seq, r.ended_at, r.attributes, h.uid IS NOT NULL, "
    "EXISTS (SELECT 1 FROM attributes a JOIN runs n ON n.num = a.run "
    f"WHERE a.name = ?2 AND a.value = json_quote(r.uid) AND n.status IN ({_OPEN})) "
    # CROSS keeps the order: SQLite would visit all runs and look each of them up in the tree.
    "FROM tree t CROSS JOIN runs r ON r.uid = t.uid LEFT JOIN holds h ON h.uid = r.uid ORDER BY r.uid <> t.root"
)
_DOOM = (
    f"UPDATE runs SET uid = '{DOOMED_UID}' || num || ':' || uid, status = '{DOOMED}' "
    "WHERE uid IN (SELECT value FROM json_each(?))"
)
_DOOMED = f"SELECT num, attributes FROM runs WHERE status = '{DOOMED}' AND id <> uid ORDER BY created_at, uid LIMIT ?"
PARTS = {
    "events": "num",
    "inbox": "run, n",
    "posted": "run, id",
    "keys": "run, key",
    "start_ids": "id",
    "budgets": "scope, unit",
    "reservations": "run, task, attempt, delivery",
    "snapshots": "run, fold",
    "chunks": 'run, stream, "offset"',
    "step_lines": "run, number",
    "step_line_totals": "run",
    "tasks": "num",
    "refs": "hash, run",
}
"""The tables with rows of runs, and their keys. Attributes are found by the row of the run."""
# The largest number is used again by SQLite once its row is gone, and writers remember the numbers of runs.
_REMOVE = "DELETE FROM runs WHERE num IN (SELECT value FROM json_each(?)) AND num < (SELECT max(num) FROM runs)"
_FREE_ID = "UPDATE runs SET id = uid WHERE num IN (SELECT value FROM json_each(?))"
_TURN = (
    "INSERT INTO turns (name, host, until) VALUES ('retention', ?1, ?2 + ?3) ON CONFLICT (name) DO UPDATE "
    "SET host = excluded.host, until = excluded.until WHERE host = excluded.host OR until <= ?2"
)
# Runs that have output, each found with one step in the index.
_WITH_CHUNKS = (
    "WITH RECURSIVE found (run) AS (SELECT min(run) FROM chunks "
    "UNION ALL SELECT (SELECT min(c.run) FROM chunks c WHERE c.run > f.run) FROM found f WHERE f.run IS NOT NULL) "
    "SELECT f.run FROM found f JOIN runs r ON r.num = f.run WHERE r.ended_at <= ?"
)

_SHORTEN = (
    "DELETE FROM events WHERE num IN "
    "(SELECT e.num FROM runs r JOIN events e ON e.run = r.num WHERE r.uid = ? AND e.seq <= r.cut LIMIT ?)"
)
ENDED = EndedRun.__struct_fields__
NO_ATTRIBUTES = "{}"


class SqliteRetention:
    """The retention of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def doom(self, uid: RunUid, rule: DoomRule, entry: AuditEntry | None = None) -> DoomResult:
        return await self._writer.large(lambda connection: _doom_tree(connection, uid, rule, entry))

    async def doom_each(
        self, uids: Sequence[RunUid], rule: DoomRule, entry: AuditEntry | None = None
    ) -> Sequence[DoomResult]:
        return await self._writer.large(lambda connection: _doom_each(connection, uids, rule, entry))

    async def clear(self, *, limit: int) -> Cleared:
        # Mostly there is nothing to do, so look first without a write transaction.
        if not self._reader.read(lambda connection: connection.execute(_DOOMED, (1,)).fetchone()):
            return Cleared(0, 0)
        return await self._writer.large(lambda connection: _clear_doomed(connection, limit))

    async def is_doomed(self, id: RunId) -> bool:
        text = f"SELECT 1 FROM runs WHERE id = ? AND status = '{DOOMED}'"
        return self._reader.read(lambda connection: connection.execute(text, (id,)).fetchone() is not None)

    async def ended(self, query: EndedQuery) -> EndedPage:
        text, values = _ended_runs_query(query)
        rows = await self._reader.read_in_thread(
            lambda connection: [
                EndedRun(**dict(zip(ENDED, row, strict=True))) for row in connection.execute(text, values)
            ]
        )
        page = rows[: query.limit]
        return EndedPage(page, make_cursor(page[-1].created_at, page[-1].uid) if len(rows) > query.limit else None)

    async def clear_streams(self, *, ended_before: Millis, limit: int) -> int:
        runs = await self._reader.read_in_thread(
            lambda connection: [run for (run,) in connection.execute(f"{_WITH_CHUNKS} LIMIT ?", (ended_before, limit))]
        )
        if not runs:
            return 0

        def work(connection: apsw.Connection) -> int:
            # A run may have been reopened meanwhile.
            query = "SELECT num FROM runs WHERE num IN (SELECT value FROM json_each(?)) AND ended_at <= ?"
            ended = [num for (num,) in connection.execute(query, (json_text(runs), ended_before))]
            return _delete_part(connection, "chunks", ended, limit)

        return await self._writer.large(work)

    async def shorten(self, uid: RunUid, upto: int, *, limit: int) -> int:
        def work(connection: apsw.Connection) -> int:
            connection.execute("UPDATE runs SET cut = ?2 WHERE uid = ?1 AND cut < ?2 AND seq > ?2", (uid, upto))
            connection.execute(_SHORTEN, (uid, limit))
            return connection.changes()

        return await self._writer.large(work)

    async def take_turn(self, host: HostId, *, now: Millis, lease_ms: int) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute(_TURN, (host, now, lease_ms))
            return bool(connection.changes())

        return await self._writer.small(work)

    async def size(self, *, since: Millis) -> StoreSize:
        def work(connection: apsw.Connection) -> StoreSize:
            pages = connection.pragma("page_count") - connection.pragma("freelist_count")
            (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone() or (0,)
            (recent,) = connection.execute("SELECT count(*) FROM runs WHERE created_at >= ?", (since,)).fetchone() or (
                0,
            )
            return StoreSize(runs=runs, recent=recent, size_bytes=pages * connection.pragma("page_size"))

        return await self._reader.read_in_thread(work)


def _doom_tree(connection: apsw.Connection, uid: RunUid, rule: DoomRule, entry: AuditEntry | None) -> DoomResult:
    """Judge a tree and mark its rows."""
    (result,) = _judge_each(connection, [uid], rule)
    if entry is not None and result.outcome is DoomOutcome.DOOMED and not rule.dry_run:
        write_entry(connection, with_counts(entry, result))
    return result


def _doom_each(
    connection: apsw.Connection, uids: Sequence[RunUid], rule: DoomRule, entry: AuditEntry | None
) -> list[DoomResult]:
    """Judge and mark several trees, and write one entry for all of them."""
    results = _judge_each(connection, uids, rule)
    written = with_sums(entry, results) if entry is not None and not rule.dry_run else None
    if written is not None:
        write_entry(connection, written)
    return results


def _judge_each(connection: apsw.Connection, uids: Sequence[RunUid], rule: DoomRule) -> list[DoomResult]:
    """Judge trees, and mark the rows of those that may go. Every statement is for all trees.

    Between two statements this thread waits for the interpreter, while others wait for the transaction.
    """
    trees: dict[RunUid, list[TreeRun]] = {uid: [] for uid in uids}
    rows: list[Any] = connection.execute(_TREES, (json_text(uids), rule.named_by)).fetchall()
    for root, *row in rows:
        trees[root].append(_tree_run(row))
    results = {uid: judge_doom(tree, rule) for uid, tree in trees.items()}
    doomed = [run.uid for uid in trees if results[uid].outcome is DoomOutcome.DOOMED for run in trees[uid]]
    if doomed and not rule.dry_run:
        connection.execute(_DOOM, (json_text(doomed),))
    return [results[uid] for uid in uids]


def _clear_doomed(connection: apsw.Connection, limit: int) -> Cleared:
    """Delete rows of the oldest doomed runs. Their own rows go once nothing else is left."""
    doomed: list[Any] = connection.execute(_DOOMED, (min(RUNS_PER_CLEAR, limit),)).fetchall()
    nums = [num for num, _ in doomed]
    left = limit
    for table in PARTS:
        if nums and left > 0:
            left -= _delete_part(connection, table, nums, left)
    if left <= 0:
        return Cleared(limit, 0)
    for num, attributes in doomed:
        if attributes != NO_ATTRIBUTES:
            unindex_attributes(connection, num, msgspec.json.decode(attributes))
    if nums:
        connection.execute(_FREE_ID, (json_text(nums),))
        connection.execute(_REMOVE, (json_text(nums),))
    # Rows that had the largest number before.
    connection.execute(f"DELETE FROM runs WHERE status = '{DOOMED}' AND id = uid AND num < (SELECT max(num) FROM runs)")
    return Cleared(limit - left, len(doomed))


def _delete_part(connection: apsw.Connection, table: str, nums: Sequence[int], limit: int) -> int:
    """Delete up to ``limit`` rows of these runs from a table. Returns how many."""
    key = PARTS[table]
    connection.execute(
        f"DELETE FROM {table} WHERE ({key}) IN "
        f"(SELECT {key} FROM {table} WHERE run IN (SELECT value FROM json_each(?)) LIMIT ?)",
        (json_text(nums), limit),
    )
    return connection.changes()


def _ended_runs_query(query: EndedQuery) -> tuple[str, list[Any]]:
    """Return the statement of a query. A run ends after its start, so the index by start limits the search."""
    parts = ["parent IS NULL", "status = ?", "ended_at <= ?", "created_at <= ?"]
    values: list[Any] = [query.status, query.ended_before, query.ended_before]
    if query.workflow is not None:
        parts.append("workflow = ?")
        values.append(query.workflow)
    if query.without:
        parts.append(f"+workflow NOT IN ({', '.join('?' * len(query.without))})")
        values += query.without
    if query.id_prefix is not None:
        parts.append("id >= ? AND id < ?")
        values += (query.id_prefix, query.id_prefix + LAST_CHARACTER)
    if query.after is not None:
        parts.append("(created_at, uid) > (?, ?)")
        values += parse_cursor(query.after)
    text = f"SELECT {', '.join(ENDED)} FROM runs WHERE {' AND '.join(parts)} ORDER BY created_at, uid LIMIT ?"
    return text, [*values, query.limit + 1]


def _tree_run(row: Sequence[Any]) -> TreeRun:
    uid, name, parent, status, seq, ended_at, attributes, kept, named = row
    return TreeRun(
        uid=uid,
        id=name,
        parent=parent,
        status=status,
        seq=seq,
        ended_at=ended_at,
        attributes=msgspec.json.decode(attributes),
        kept=bool(kept),
        named=bool(named),
    )
