"""Stored versions of workflows in Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.errors import Conflict, NotFound
from weft.ports.store import Definition
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.session import Record

_SELECT = "SELECT name, version, style, body, created_at FROM definitions"
_PUT = (
    "INSERT INTO definitions (name, version, style, body, created_at) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
_BY_TAG = f"{_SELECT} JOIN tags USING (name, version) WHERE name = $1 AND tag = $2"
_TAG = (
    "INSERT INTO tags (name, tag, version) SELECT name, $2, version FROM definitions WHERE name = $1 AND version = $3 "
    "ON CONFLICT (name, tag) DO UPDATE SET version = excluded.version RETURNING 1"
)


class PostgresDefinitions:
    """The definitions of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(self, definition: Definition) -> bool:
        one = definition
        values = (one.name, one.version, one.style, one.body.decode(), one.created_at)
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
        found = await self._fetch_one(f"{_SELECT} WHERE name = $1 AND version = $2", name, version)
        return found if found is not None else await self._fetch_one(_BY_TAG, name, version)

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        text = f"{_SELECT} WHERE $1::text IS NULL OR name = $1 ORDER BY name, created_at, num"
        return [_definition(row) for row in await fetch(self._pool, text, name)]

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        text = 'SELECT name, version FROM definitions WHERE style = $1 ORDER BY name COLLATE "C", version COLLATE "C"'
        return [(name, version) for name, version in await fetch(self._pool, text, style)]

    async def tag(self, name: str, tag: str, version: str) -> None:
        if not await fetch_value(self._pool, _TAG, name, tag, version):
            raise NotFound(f"{name} has no version {version}.", name=name, version=version)

    async def tags(self, name: str) -> Mapping[str, str]:
        rows = await fetch(self._pool, "SELECT tag, version FROM tags WHERE name = $1 ORDER BY tag", name)
        return {str(tag): str(version) for tag, version in rows}

    async def _fetch_one(self, text: str, *values: str) -> Definition | None:
        row = await fetch_row(self._pool, text, *values)
        return None if row is None else _definition(row)


def _definition(row: Record) -> Definition:
    return Definition(
        name=row["name"],
        version=row["version"],
        style=row["style"],
        body=row["body"].encode(),
        created_at=row["created_at"],
    )
