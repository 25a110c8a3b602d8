"""Stored versions of workflows in Postgres."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.definitions import VERSION_MARK, Definition, Origin
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.session import Record
from weft.stores.rows import origins_below

_SELECT = "SELECT name, version, style, body, created_at, origin FROM definitions"
_PUT = (
    "INSERT INTO definitions (name, version, style, body, created_at, origin) VALUES ($1, $2, $3, $4, $5, $6) "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
_PROMOTE = (
    "UPDATE definitions SET used_at = greatest(used_at, $4), "
    "origin = CASE WHEN origin = ANY ($5::text[]) THEN $3 ELSE origin END WHERE name = $1 AND version = $2"
)
_IS_UNUSED = (
    "greatest(created_at, used_at) < $1 "
    "AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.workflow = d.name AND r.version = d.version) "
    "AND NOT EXISTS (SELECT 1 FROM runs r "
    f"WHERE r.attributes @> jsonb_build_object('{VERSION_MARK}' || d.version, true)) "
    'AND NOT EXISTS (SELECT 1 FROM tag_moves m WHERE m.workflow = d.name AND d.version IN (m."before", m."after"))'
)
_UNUSED = f"SELECT name, version FROM definitions d WHERE style = $2 AND {_IS_UNUSED} ORDER BY name, version LIMIT $3"
_REMOVE = f"DELETE FROM definitions d WHERE name = $2 AND version = $3 AND {_IS_UNUSED} RETURNING 1"


class PostgresDefinitions:
    """The definitions of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(self, definition: Definition) -> bool:
        one = definition
        values = (one.name, one.version, one.style, one.body.decode(), one.created_at, one.origin)
        if await fetch_value(self._pool, _PUT, *values):
            return True
        known = await self._fetch_one(f"{_SELECT} WHERE name = $1 AND version = $2", one.name, one.version)
        if known is not None and (known.body, known.style) != (one.body, one.style):
            raise Conflict(
                f"Version {one.version} of {one.name} is already stored with another definition.",
                hint="A stored version never changes. Store the new definition under another version.",
            )
        return False

    async def get(self, name: str, version: str) -> Definition | None:
        return await self._fetch_one(f"{_SELECT} WHERE name = $1 AND version = $2", name, version)

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        text = f"{_SELECT} WHERE $1::text IS NULL OR name = $1 ORDER BY name, created_at, num"
        return [_definition_of_row(row) for row in await fetch(self._pool, text, name)]

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        text = 'SELECT name, version FROM definitions WHERE style = $1 ORDER BY name COLLATE "C", version COLLATE "C"'
        return [(name, version) for name, version in await fetch(self._pool, text, style)]

    async def promote(self, name: str, version: str, origin: Origin, *, at: Millis) -> None:
        await fetch(self._pool, _PROMOTE, name, version, origin, at, list(origins_below(origin)))

    async def unused(self, style: str, *, before: Millis, limit: int) -> Sequence[tuple[str, str]]:
        return [(name, version) for name, version in await fetch(self._pool, _UNUSED, before, style, limit)]

    async def remove(self, name: str, version: str, *, before: Millis) -> bool:
        return await fetch_value(self._pool, _REMOVE, before, name, version) is not None

    async def _fetch_one(self, text: str, *values: str) -> Definition | None:
        row = await fetch_row(self._pool, text, *values)
        return None if row is None else _definition_of_row(row)


def _definition_of_row(row: Record) -> Definition:
    return Definition(
        name=row["name"],
        version=row["version"],
        style=row["style"],
        body=row["body"].encode(),
        created_at=row["created_at"],
        origin=row["origin"],
    )
