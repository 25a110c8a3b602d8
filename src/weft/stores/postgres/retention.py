"""Delete and keep runs in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from weft.stores.postgres.holds import AUDIT, entry_values
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.session import SCHEMA, Record, Session
from weft.stores.removal import DOOMED_UID, RUNS_PER_CLEAR, TreeRun, judge_doom, with_counts, with_sums
from weft.stores.rows import LAST_CHARACTER, make_cursor, parse_cursor

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_TREE = (
    "WITH RECURSIVE tree (uid) AS (SELECT uid FROM runs WHERE uid = $1 "
    "UNION ALL SELECT r.uid FROM tree t JOIN runs r ON r.parent = t.uid) SELECT uid FROM tree"
)
_LOCK = "SELECT 1 FROM runs WHERE uid = ANY ($1::text[]) ORDER BY uid FOR UPDATE"
_FACTS = (
    "SELECT r.uid, r.id, r.parent, r.status, r.seq, r.ended_at, r.attributes, h.uid IS NOT NULL AS kept, "
    "$3::text IS NOT NULL AND EXISTS (SELECT 1 FROM runs n "
    f"WHERE n.attributes @> jsonb_build_object($3::text, r.uid) AND n.status IN ({_OPEN})) AS named "
    "FROM runs r LEFT JOIN holds h ON h.uid = r.uid WHERE r.uid = ANY ($1::text[]) ORDER BY r.uid <> $2"
)
_DOOM = f"UPDATE runs SET uid = '{DOOMED_UID}' || num || ':' || uid, status = '{DOOMED}' WHERE uid = ANY ($1::text[])"
_TURN = (
    "INSERT INTO turns AS t (name, host, until) VALUES ('retention', $1, $2::bigint + $3::bigint) "
    "ON CONFLICT (name) DO UPDATE SET host = excluded.host, until = excluded.until "
    "WHERE t.host = excluded.host OR t.until <= $2::bigint RETURNING 1"
)
# Runs that have output, each found with one step in the index.
_CLEAR_STREAMS = (
    "WITH RECURSIVE found (run) AS (SELECT min(run) FROM streams "
    "UNION ALL SELECT (SELECT min(s.run) FROM streams s WHERE s.run > f.run) FROM found f WHERE f.run IS NOT NULL), "
    "ended AS MATERIALIZED (SELECT r.num FROM found f JOIN runs r ON r.num = f.run WHERE r.ended_at <= $1 LIMIT $2), "
    "locked AS MATERIALIZED (SELECT s.run, s.stream FROM streams s JOIN ended e ON e.num = s.run "
    "ORDER BY s.run, s.stream FOR UPDATE OF s), "
    "gone AS (DELETE FROM chunks c USING locked l WHERE c.run = l.run AND c.stream = l.stream RETURNING 1), "
    "freed AS (DELETE FROM streams s USING locked l WHERE s.run = l.run AND s.stream = l.stream) "
    "SELECT count(*) FROM gone"
)
_SIZE = (
    "SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM runs WHERE created_at >= $1) AS recent, "
    "(SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c "
    f"WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'r') AS size_bytes"
)
_SHORTEN = (
    "WITH old AS MATERIALIZED (SELECT e.run, e.seq FROM runs r JOIN events e ON e.run = r.num "
    "WHERE r.uid = $1 AND e.seq <= r.cut LIMIT $2), "
    "gone AS (DELETE FROM events e USING old WHERE e.run = old.run AND e.seq = old.seq RETURNING 1) "
    "SELECT count(*) FROM gone"
)
ENDED = EndedRun.__struct_fields__


class PostgresRetention:
    """The retention of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def doom(self, uid: RunUid, rule: DoomRule, entry: AuditEntry | None = None) -> DoomResult:
        async def work(session: Session) -> DoomResult:
            async with session.transaction():
                return await _doom_tree(session, uid, rule, entry)

        return await self._pool.run(work)

    async def doom_each(
        self, uids: Sequence[RunUid], rule: DoomRule, entry: AuditEntry | None = None
    ) -> Sequence[DoomResult]:
        async def work(session: Session) -> list[DoomResult]:
            async with session.transaction():
                results = [await _doom_tree(session, uid, rule, None) for uid in sorted(uids)]
                written = with_sums(entry, results) if entry is not None and not rule.dry_run else None
                if written is not None:
                    await session.execute(AUDIT, *entry_values(written))
                return results

        found = dict(zip(sorted(uids), await self._pool.run(work), strict=True))
        return [found[uid] for uid in uids]

    async def clear(self, *, limit: int) -> Cleared:
        row = await fetch_row(self._pool, "SELECT * FROM clear_doomed($1, $2)", min(RUNS_PER_CLEAR, limit), limit)
        assert row is not None
        return Cleared(*row)

    async def is_doomed(self, id: RunId) -> bool:
        text = f"SELECT 1 FROM runs WHERE id = $1 AND status = '{DOOMED}'"
        return await fetch_value(self._pool, text, id) is not None

    async def ended(self, query: EndedQuery) -> EndedPage:
        text, values = _ended_runs_query(query)
        rows = [EndedRun(**dict(row.items())) for row in await fetch(self._pool, text, *values)]
        page = rows[: query.limit]
        return EndedPage(page, make_cursor(page[-1].created_at, page[-1].uid) if len(rows) > query.limit else None)

    async def clear_streams(self, *, ended_before: Millis, limit: int) -> int:
        return int(await fetch_value(self._pool, _CLEAR_STREAMS, ended_before, limit))

    async def shorten(self, uid: RunUid, upto: int, *, limit: int) -> int:
        await fetch(self._pool, "UPDATE runs SET cut = $2 WHERE uid = $1 AND cut < $2 AND seq > $2", uid, upto)
        return int(await fetch_value(self._pool, _SHORTEN, uid, limit))

    async def take_turn(self, host: HostId, *, now: Millis, lease_ms: int) -> bool:
        return await fetch_value(self._pool, _TURN, host, now, lease_ms) is not None

    async def size(self, *, since: Millis) -> StoreSize:
        row = await fetch_row(self._pool, _SIZE, since)
        assert row is not None
        return StoreSize(**dict(row.items()))


async def _doom_tree(session: Session, uid: RunUid, rule: DoomRule, entry: AuditEntry | None) -> DoomResult:
    """Mark a tree for deletion if that is allowed, inside a transaction. Its rows are locked before they are read."""
    uids: list[str] = []
    while True:
        before = uids
        uids = [found for (found,) in await session.fetch(_TREE, uid)]
        # A run that was still open when the tree was read may have started another before it was locked.
        if len(uids) == len(before):
            break
        await session.execute(_LOCK, uids)
    tree = [_tree_run(row) for row in await session.fetch(_FACTS, uids, uid, rule.named_by)]
    result = judge_doom(tree, rule)
    if result.outcome is DoomOutcome.DOOMED and not rule.dry_run:
        await session.execute(_DOOM, uids)
        if entry is not None:
            await session.execute(AUDIT, *entry_values(with_counts(entry, result)))
    return result


def _ended_runs_query(query: EndedQuery) -> tuple[str, list[Any]]:
    """Return the statement of a query. A run ends after its start, so the index by start limits the search."""
    values: list[Any] = [query.status, query.ended_before]
    parts = ["parent IS NULL", "status = $1", "ended_at <= $2", "created_at <= $2"]

    def bind(value: Any) -> str:
        values.append(value)
        return f"${len(values)}"

    if query.workflow is not None:
        parts.append(f"workflow = {bind(query.workflow)}")
    if query.without:
        parts.append(f"workflow <> ALL ({bind(list(query.without))}::text[])")
    if query.id_prefix is not None:
        parts.append(f"id >= {bind(query.id_prefix)} AND id < {bind(query.id_prefix + LAST_CHARACTER)}")
    if query.after is not None:
        created_at, uid = parse_cursor(query.after)
        parts.append(f"(created_at, uid) > ({bind(created_at)}::bigint, {bind(uid)}::text)")
    text = (
        f"SELECT {', '.join(ENDED)} FROM runs WHERE {' AND '.join(parts)} "
        f"ORDER BY created_at, uid LIMIT {bind(query.limit + 1)}::bigint"
    )
    return text, values


def _tree_run(row: Record) -> TreeRun:
    return TreeRun(**{**dict(row.items()), "attributes": msgspec.json.decode(row["attributes"])})
