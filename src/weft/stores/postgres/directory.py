"""Find runs in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.ids import INTERNAL_WORKFLOWS, Epoch, HostId, Millis, RunId, RunUid
from weft.ports.store import IMPORTED, NEVER, OPEN_STATUSES, KeyRow, Page, RunQuery, RunRow
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.rows import OF_RUNS, RUN_COLUMNS, json_text, run_row
from weft.stores.rules import LAST_CHARACTER, NOT_DOOMED, as_json, make_cursor, parse_cursor

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_WANTED = (
    "(r.workflow, r.version) IN (SELECT * FROM unnest($1::text[], $2::text[])) "
    f"AND r.fault IS NULL AND r.status IN ({_OPEN})"
)
_UNLESS_HELD = "(r.status <> 'held' OR r.mail_at IS NOT NULL)"

# There are five reasons to claim a run. Each has its own query and index, so that each can stop at LIMIT.
_ORPHANED_IN_FLIGHT = (
    f"SELECT r.updated_at AS since, {OF_RUNS} FROM runs r "
    f"WHERE r.owner = ANY ($3::text[]) AND r.idle_until IS NULL AND {_WANTED} AND {_UNLESS_HELD} "
    "ORDER BY r.updated_at, r.created_at, r.uid LIMIT $5"
)
_ORPHANED_DUE = (
    f"SELECT r.idle_until AS since, {OF_RUNS} FROM runs r "
    f"WHERE r.owner = ANY ($3::text[]) AND r.idle_until <= $4 AND {_WANTED} AND {_UNLESS_HELD} "
    "ORDER BY r.idle_until, r.created_at, r.uid LIMIT $5"
)
_ORPHANED_WITH_MAIL = (
    f"SELECT r.mail_at AS since, {OF_RUNS} FROM runs r "
    f"WHERE r.mail_at IS NOT NULL AND r.owner = ANY ($3::text[]) AND {_WANTED} "
    "ORDER BY r.mail_at, r.created_at, r.uid LIMIT $5"
)
_DUE = (
    f"SELECT r.wake_at AS since, {OF_RUNS} FROM runs r WHERE r.wake_at <= $4 AND r.owner IS NULL "
    f"AND {_WANTED} AND {_UNLESS_HELD} ORDER BY r.wake_at, r.created_at, r.uid LIMIT $5"
)
_WITH_MAIL = (
    f"SELECT r.mail_at AS since, {OF_RUNS} FROM runs r WHERE r.mail_at IS NOT NULL AND r.owner IS NULL "
    # The start mail of a delayed start does not make the run due.
    f"AND (r.seq > 0 OR r.wake_at IS NULL OR r.wake_at <= $4) AND {_WANTED} "
    "ORDER BY r.mail_at, r.created_at, r.uid LIMIT $5"
)
REASONS = " UNION ALL ".join(
    f"({reason})" for reason in (_ORPHANED_IN_FLIGHT, _ORPHANED_DUE, _ORPHANED_WITH_MAIL, _DUE, _WITH_MAIL)
)
CLAIMABLE = (
    f"SELECT * FROM (SELECT DISTINCT ON (uid) * FROM ({REASONS}) "
    "AS reasons ORDER BY uid, since) AS waiting ORDER BY since, created_at, uid LIMIT $5"
)
_NEXT_UNOWNED = (
    "SELECT r.wake_at AS due FROM runs r WHERE r.wake_at IS NOT NULL AND r.owner IS NULL "
    f"AND {_WANTED} AND r.status <> 'held' ORDER BY r.wake_at LIMIT 1"
)
# For one host, because the index sorts by ``idle_until`` only within an owner.
_NEXT_OF_OWNER = (
    f"SELECT r.idle_until AS due FROM runs r WHERE r.owner = d.host AND r.idle_until < {NEVER} "
    f"AND {_WANTED} AND r.status <> 'held' ORDER BY r.idle_until LIMIT 1"
)
NEXT_WAKE = (
    f"SELECT min(due) FROM (({_NEXT_UNOWNED}) UNION ALL "
    f"(SELECT due FROM unnest($3::text[]) AS d (host) CROSS JOIN LATERAL ({_NEXT_OF_OWNER}) AS one)) AS dues"
)
OWNED = "SELECT uid, epoch FROM runs WHERE owner = $1 AND fault IS NULL"


# Each is read from an index: all runs, less Weft's own.
COUNTS = (
    "SELECT status, sum(n)::bigint FROM (SELECT status, count(*) AS n FROM runs GROUP BY status "
    "UNION ALL SELECT status, -count(*) FROM runs WHERE workflow = ANY ($1) GROUP BY status) AS counted "
    f"GROUP BY status HAVING sum(n) > 0 AND {NOT_DOOMED}"
)
COUNTS_BELOW = (
    "WITH RECURSIVE below (uid, status) AS ("
    "SELECT uid, status FROM runs WHERE parent = $1 AND ended_at IS NULL "
    "UNION ALL SELECT r.uid, r.status FROM below b JOIN runs r ON r.parent = b.uid WHERE r.ended_at IS NULL) "
    "SELECT status, count(*) FROM (SELECT status FROM below LIMIT $2) AS counted GROUP BY status"
)
VERSIONS = (
    f"SELECT workflow, version, count(*) FROM runs WHERE status IN ({_OPEN}) AND id >= $1 AND id < $2 "
    "GROUP BY workflow, version"
)


class PostgresDirectory:
    """The directory of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self, id: RunId) -> RunRow | None:
        return await self._fetch_one("id", id)

    async def row(self, uid: RunUid) -> RunRow | None:
        return await self._fetch_one("uid", uid)

    async def search(self, query: RunQuery) -> Page:
        conditions = _Conditions()
        conditions.add_query(query)
        limit = conditions.bind(query.limit + 1)
        text = (
            f"SELECT {RUN_COLUMNS} FROM runs WHERE {conditions.text} "
            f"ORDER BY created_at DESC, uid DESC LIMIT {limit}::bigint"
        )
        rows = [run_row(row) for row in await fetch(self._pool, text, *conditions.values)]
        page = rows[: query.limit]
        return Page(page, make_cursor(page[-1].created_at, page[-1].uid) if len(rows) > query.limit else None)

    async def key(self, uid: RunUid, key: str) -> KeyRow | None:
        text = "SELECT k.key, k.digest, k.seq FROM runs r JOIN keys k ON k.run = r.num WHERE r.uid = $1 AND k.key = $2"
        row = await fetch_row(self._pool, text, uid, key)
        return None if row is None else KeyRow(*row)

    async def claimable(
        self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> Sequence[RunRow]:
        names, versions = workflow_columns(workflows)
        rows = await fetch(self._pool, CLAIMABLE, names, versions, list(dead), now, limit)
        return [run_row(row) for row in rows]

    async def owned(self, host: HostId) -> Mapping[RunUid, Epoch]:
        rows = await fetch(self._pool, OWNED, host)
        return {RunUid(uid): Epoch(epoch) for uid, epoch in rows}

    async def next_wake(self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId]) -> Millis | None:
        found = await fetch_value(self._pool, NEXT_WAKE, *workflow_columns(workflows), list(dead))
        return None if found is None else Millis(found)

    async def counts(self, below: RunUid | None = None, *, limit: int = 0) -> Mapping[str, int]:
        text, values = (COUNTS, (list(INTERNAL_WORKFLOWS),)) if below is None else (COUNTS_BELOW, (below, limit))
        rows = await fetch(self._pool, text, *values)
        return {str(status): int(count) for status, count in rows}

    async def open_versions(self, id_prefix: str = "") -> Mapping[tuple[str, str], int]:
        rows = await fetch(self._pool, VERSIONS, id_prefix, id_prefix + LAST_CHARACTER)
        return {(str(workflow), str(version)): int(count) for workflow, version, count in rows}

    async def _fetch_one(self, column: str, value: str) -> RunRow | None:
        row = await fetch_row(self._pool, f"SELECT {RUN_COLUMNS} FROM runs WHERE {column} = $1 AND {NOT_DOOMED}", value)
        return None if row is None else run_row(row)


def workflow_columns(workflows: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the names and the versions, as two arrays of a statement."""
    return [name for name, _ in workflows], [version for _, version in workflows]


class _Conditions:
    """The conditions of a search: SQL and its parameters."""

    def __init__(self) -> None:
        self._parts = [NOT_DOOMED]
        self.values: list[Any] = []

    @property
    def text(self) -> str:
        return " AND ".join(self._parts)

    def bind(self, value: Any) -> str:
        """Add a parameter. Returns its placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add_query(self, query: RunQuery) -> None:
        """Add the conditions of a query."""
        for column in ("workflow", "status", "parent"):
            value = getattr(query, column)
            if value is not None:
                self._parts.append(f"{column} = {self.bind(value)}")
        if query.leaves_out:
            self._parts.append(f"workflow <> ALL ({self.bind(list(query.leaves_out))}::text[])")
        if query.hides_imported:
            self._parts.append(f"status <> {self.bind(IMPORTED)}")
        if query.since is not None:
            self._parts.append(f"created_at >= {self.bind(query.since)}")
        if query.id_prefix is not None:
            # Unlike LIKE, a range uses the index on ids and has no special characters.
            first, last = self.bind(query.id_prefix), self.bind(query.id_prefix + LAST_CHARACTER)
            self._parts.append(f"id >= {first} AND id < {last}")
        for name, value in as_json(query.where).items():
            self._add_attribute(name, value)
        if query.after is not None:
            created_at, uid = parse_cursor(query.after)
            self._parts.append(f"(created_at, uid) < ({self.bind(created_at)}::bigint, {self.bind(uid)}::text)")

    def _add_attribute(self, name: str, value: Any) -> None:
        """Require an attribute to have this value. Containment uses the index, but a list also contains its parts."""
        contained = self.bind(json_text({name: value}))
        self._parts.append(f"attributes @> {contained}::text::jsonb")
        self._parts.append(f"attributes -> {self.bind(name)}::text = {self.bind(json_text(value))}::text::jsonb")
