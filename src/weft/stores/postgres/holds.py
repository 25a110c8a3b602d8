"""Holds and the audit table in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import RunId, RunUid
from weft.ports.retention import NEWEST, AuditEntry
from weft.stores.postgres.pool import Pool, fetch, fetch_value
from weft.stores.postgres.session import Record
from weft.stores.rows import json_text

AUDIT = (
    "INSERT INTO audit (at, verb, run, uid, workflow, by, reason, details) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
    "RETURNING num"
)
_ENTRY = "a.at, a.verb, a.run, a.uid, a.workflow, a.by, a.reason, a.details, a.num AS number"
# The lock on the run is the one that a deletion waits for.
_KEEP = (
    "WITH kept AS (SELECT uid FROM runs WHERE uid = $4 FOR NO KEY UPDATE), "
    "entry AS (INSERT INTO audit (at, verb, run, uid, workflow, by, reason, details) "
    "SELECT $1, $2, $3, $4, $5, $6, $7, $8 FROM kept "
    "WHERE NOT EXISTS (SELECT 1 FROM holds h WHERE h.uid = $4) RETURNING num) "
    "INSERT INTO holds (uid, entry) SELECT $4, num FROM entry RETURNING 1"
)
_END_KEEP = (
    "WITH gone AS (DELETE FROM holds WHERE uid = $4 RETURNING 1) "
    "INSERT INTO audit (at, verb, run, uid, workflow, by, reason, details) "
    "SELECT $1, $2, $3, $4, $5, $6, $7, $8 FROM gone RETURNING 1"
)


class PostgresHolds:
    """The holds of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, uid: RunUid, entry: AuditEntry) -> bool:
        return bool(await fetch_value(self._pool, _KEEP, *entry_values(msgspec.structs.replace(entry, uid=uid))))

    async def end(self, uid: RunUid, entry: AuditEntry) -> bool:
        return bool(await fetch_value(self._pool, _END_KEEP, *entry_values(msgspec.structs.replace(entry, uid=uid))))

    async def record(self, entry: AuditEntry) -> None:
        await fetch(self._pool, AUDIT, *entry_values(entry))

    async def find(self, uids: Sequence[RunUid]) -> Mapping[RunUid, AuditEntry]:
        text = f"SELECT {_ENTRY} FROM holds h JOIN audit a ON a.num = h.entry WHERE h.uid = ANY ($1::text[])"
        return {RunUid(row["uid"]): _entry_of_row(row) for row in await fetch(self._pool, text, list(uids))}

    async def audit(self, *, run: RunId | None = None, before: int = NEWEST, limit: int = 100) -> Sequence[AuditEntry]:
        where = "$1::text IS NULL" if run is None else "a.run = $1"
        text = f"SELECT {_ENTRY} FROM audit a WHERE {where} AND a.num < $2 ORDER BY a.num DESC LIMIT $3"
        return [_entry_of_row(row) for row in await fetch(self._pool, text, run, before, limit)]


def entry_values(entry: AuditEntry) -> tuple[Any, ...]:
    """Return the parameters of ``AUDIT``."""
    head = (entry.at, entry.verb, entry.run, entry.uid, entry.workflow, entry.by, entry.reason)
    return *head, json_text(entry.details)


def _entry_of_row(row: Record) -> AuditEntry:
    return AuditEntry(**{**dict(row.items()), "details": msgspec.json.decode(row["details"])})
