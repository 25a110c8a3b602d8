"""Stored versions of workflows in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.definitions import VERSION_MARK, Definition, Origin
from weft.stores.rows import origins_below
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_SELECT = "SELECT name, version, style, body, created_at, origin FROM definitions"
_PROMOTE = (
    "UPDATE definitions SET used_at = max(used_at, ?4), "
    "origin = CASE WHEN origin IN (SELECT value FROM json_each(?5)) THEN ?3 ELSE origin END "
    "WHERE name = ?1 AND version = ?2"
)
_IS_UNUSED = (
    "max(created_at, used_at) < ?1 "
    "AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.workflow = d.name AND r.version = d.version) "
    f"AND NOT EXISTS (SELECT 1 FROM attributes a WHERE a.name = '{VERSION_MARK}' || d.version) "
    "AND NOT EXISTS (SELECT 1 FROM tag_moves m WHERE m.workflow = d.name AND d.version IN (m.before, m.after))"
)
_UNUSED = f"SELECT name, version FROM definitions d WHERE style = ?2 AND {_IS_UNUSED} ORDER BY name, version LIMIT ?3"
SMALL_BYTES_MAX = 64 * 1024
"""A larger definition is written on the writer's thread: the commit syncs all of it."""
_REMOVE = f"DELETE FROM definitions AS d WHERE name = ?2 AND version = ?3 AND {_IS_UNUSED}"


class SqliteDefinitions:
    """The definitions of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, definition: Definition) -> bool:
        def work(connection: apsw.Connection) -> bool:
            known = _read_definition(connection, definition.name, definition.version)
            if known is None:
                _insert_definition(connection, definition)
                return True
            if (known.body, known.style) != (definition.body, definition.style):
                raise Conflict(
                    f"Version {definition.version} of {definition.name} is already stored with another definition.",
                    hint="A stored version never changes. Store the new definition under another version.",
                )
            return False

        is_small = len(definition.body) <= SMALL_BYTES_MAX
        return await (self._writer.small(work) if is_small else self._writer.large(work))

    async def get(self, name: str, version: str) -> Definition | None:
        return self._reader.read(lambda connection: _read_definition(connection, name, version))

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        text = f"{_SELECT} WHERE ?1 IS NULL OR name = ?1 ORDER BY name, created_at, rowid"
        return await self._reader.read_in_thread(
            lambda connection: [_definition_of_row(row) for row in connection.execute(text, (name,))]
        )

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        text = "SELECT name, version FROM definitions WHERE style = ? ORDER BY name, version"
        return self._reader.read(lambda connection: list(connection.execute(text, (style,))))

    async def promote(self, name: str, version: str, origin: Origin, *, at: Millis) -> None:
        below = msgspec.json.encode(origins_below(origin)).decode()
        await self._writer.small(lambda connection: connection.execute(_PROMOTE, (name, version, origin, at, below)))

    async def unused(self, style: str, *, before: Millis, limit: int) -> Sequence[tuple[str, str]]:
        values = (before, style, limit)
        return await self._reader.read_in_thread(lambda connection: list(connection.execute(_UNUSED, values)))

    async def remove(self, name: str, version: str, *, before: Millis) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute(_REMOVE, (before, name, version))
            return bool(connection.changes())

        return await self._writer.large(work)


def _read_definition(connection: apsw.Connection, name: str, version: str) -> Definition | None:
    row = connection.execute(f"{_SELECT} WHERE name = ? AND version = ?", (name, version)).fetchone()
    return None if row is None else _definition_of_row(row)


def _insert_definition(connection: apsw.Connection, one: Definition) -> None:
    connection.execute(
        "INSERT INTO definitions (name, version, style, body, created_at, origin) VALUES (?, ?, ?, ?, ?, ?)",
        (one.name, one.version, one.style, one.body.decode(), one.created_at, one.origin),
    )


def _definition_of_row(row: tuple[Any, ...]) -> Definition:
    name, version, style, body, created_at, origin = row
    return Definition(
        name=name, version=version, style=style, body=body.encode(), created_at=Millis(created_at), origin=origin
    )
