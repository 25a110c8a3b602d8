"""Find runs in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.ids import INTERNAL_WORKFLOWS, Epoch, HostId, Millis, RunId, RunUid
from weft.core.start_rules import SINGLETON, SINGLETON_END
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import NEVER, OPEN_STATUSES, KeyRow, Page, RunRow
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.rows import OF_RUNS, RUN_COLUMNS, run_row
from weft.stores.postgres.run_search import count_runs, search_runs
from weft.stores.rows import LAST_CHARACTER, NOT_DOOMED

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_WANTED = (
    "(r.workflow, r.version) IN (SELECT * FROM unnest($1::text[], $2::text[])) "
    f"AND r.fault IS NULL AND r.status IN ({_OPEN})"
)
_NOT_BEHIND = (
    f"(r.slot IS NULL OR r.seq > 0 OR NOT (r.slot >= '{SINGLETON}' AND r.slot < '{SINGLETON_END}') OR NOT EXISTS "
    "(SELECT 1 FROM runs older WHERE older.slot = r.slot AND older.ended_at IS NULL AND older.num < r.num))"
)
"""Leaves out a singleton that has not begun, while an older run with its slot is open."""
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


def _due_runs_query(rank: str, order: str) -> str:
    return (
        f"SELECT r.wake_at AS since, {OF_RUNS} FROM runs r WHERE r.wake_at <= $4 AND r.owner IS NULL AND {rank} "
        f"AND {_WANTED} AND {_UNLESS_HELD} AND {_NOT_BEHIND} ORDER BY {order} LIMIT $5"
    )


def _with_mail(rank: str, order: str) -> str:
    return (
        f"SELECT r.mail_at AS since, {OF_RUNS} FROM runs r WHERE r.mail_at IS NOT NULL AND r.owner IS NULL AND {rank} "
        # The start mail of a delayed start does not make the run due.
        f"AND (r.seq > 0 OR r.wake_at IS NULL OR r.wake_at <= $4) AND {_WANTED} AND {_NOT_BEHIND} "
        f"ORDER BY {order} LIMIT $5"
    )


# Jumps from priority to priority in the index. Each is looked at by itself: many runs that sleep do not hide those with
# a lower priority that are due.
_PRIORITY = "SELECT r.priority FROM runs r WHERE r.wake_at IS NOT NULL AND r.owner IS NULL AND r.priority <> 0"
_DUE_BY_PRIORITY = (
    f"WITH RECURSIVE ranks (rank) AS (({_PRIORITY} ORDER BY r.priority DESC LIMIT 1) UNION ALL "
    f"SELECT ({_PRIORITY} AND r.priority < k.rank ORDER BY r.priority DESC LIMIT 1) "
    "FROM ranks k WHERE k.rank IS NOT NULL) SELECT one.* FROM ranks k CROSS JOIN LATERAL "
    f"({_due_runs_query('r.priority <> 0 AND r.priority = k.rank', 'r.wake_at, r.created_at, r.uid')}) AS one "
    "ORDER BY one.priority DESC, one.wake_at, one.created_at, one.uid LIMIT $5"
)
# Runs with a priority have indexes of their own, so that a long line of others does not hide them.
_UNOWNED = (
    _due_runs_query("r.priority = 0", "r.wake_at, r.created_at, r.uid"),
    _with_mail("r.priority = 0", "r.mail_at, r.created_at, r.uid"),
    _DUE_BY_PRIORITY,
    _with_mail("r.priority <> 0", "r.priority DESC, r.mail_at, r.created_at, r.uid"),
)
REASONS = " UNION ALL ".join(
    f"({reason})" for reason in (_ORPHANED_IN_FLIGHT, _ORPHANED_DUE, _ORPHANED_WITH_MAIL, *_UNOWNED)
)
CLAIMABLE = (
    f"SELECT * FROM (SELECT DISTINCT ON (uid) * FROM ({REASONS}) "
    "AS reasons ORDER BY uid, since) AS waiting ORDER BY priority DESC, since, created_at, uid LIMIT $5"
)
_NEXT_UNOWNED = (
    "SELECT r.wake_at AS due FROM runs r WHERE r.wake_at IS NOT NULL AND r.owner IS NULL "
    f"AND {_WANTED} AND {_NOT_BEHIND} AND r.status <> 'held' ORDER BY r.wake_at LIMIT 1"
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
# Jumps from name to name in the index.
WORKFLOWS = """
    WITH RECURSIVE names AS (
        (SELECT workflow AS name FROM runs ORDER BY workflow LIMIT 1)
        UNION ALL
        SELECT (SELECT r.workflow FROM runs r WHERE r.workflow > n.name ORDER BY r.workflow LIMIT 1)
        FROM names n WHERE n.name IS NOT NULL
    )
    SELECT name FROM names WHERE starts_with(name, $1) ORDER BY name COLLATE "C" LIMIT $2::bigint
"""


class PostgresDirectory:
    """The directory of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self, id: RunId) -> RunRow | None:
        return await self._fetch_one("id", id)

    async def row(self, uid: RunUid) -> RunRow | None:
        return await self._fetch_one("uid", uid)

    async def search(self, query: RunQuery) -> Page:
        return await search_runs(self._pool, query)

    async def count(self, queries: Sequence[RunQuery], *, limit: int) -> Sequence[RunCount]:
        return [await count_runs(self._pool, query, limit) for query in queries]

    async def workflows(self, prefix: str = "", *, limit: int) -> Sequence[str]:
        return [str(name) for (name,) in await fetch(self._pool, WORKFLOWS, prefix, limit)]

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
