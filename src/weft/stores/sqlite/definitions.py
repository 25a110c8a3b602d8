"""Stored versions of workflows in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.definitions import Definition, Origin
from weft.stores.rules import origins_below
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_SELECT = "SELECT name, version, style, body, created_at, origin FROM definitions"
_PROMOTE = (
    "UPDATE definitions SET origin = ? WHERE name = ? AND version = ? AND origin IN (SELECT value FROM json_each(?))"
)


class SqliteDefinitions:
    """The definitions of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, definition: Definition) -> bool:
        def work(connection: apsw.Connection) -> bool:
            known = _read(connection, definition.name, definition.version)
            if known is None:
                _insert(connection, definition)
                return True
            if (known.body, known.style) != (definition.body, definition.style):
                raise Conflict(
                    f"Version {definition.version} of {definition.name} is already stored with another definition.",
                    hint="A stored version never changes. Store the new definition under another version.",
                )
            return False

        return await self._writer.small(work)

    async def get(self, name: str, version: str) -> Definition | None:
        return self._reader.read(lambda connection: _read(connection, name, version))

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        text = f"{_SELECT} WHERE ?1 IS NULL OR name = ?1 ORDER BY name, created_at, rowid"
        return await self._reader.read_in_thread(
            lambda connection: [_definition(row) for row in connection.execute(text, (name,))]
        )

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        text = "SELECT name, version FROM definitions WHERE style = ? ORDER BY name, version"
        return self._reader.read(lambda connection: list(connection.execute(text, (style,))))

    async def promote(self, name: str, version: str, origin: Origin) -> None:
        below = msgspec.json.encode(origins_below(origin)).decode()
        await self._writer.small(lambda connection: connection.execute(_PROMOTE, (origin, name, version, below)))


def _read(connection: apsw.Connection, name: str, version: str) -> Definition | None:
    row = connection.execute(f"{_SELECT} WHERE name = ? AND version = ?", (name, version)).fetchone()
    return None if row is None else _definition(row)


def _insert(connection: apsw.Connection, one: Definition) -> None:
    connection.execute(
        "INSERT INTO definitions (name, version, style, body, created_at, origin) VALUES (?, ?, ?, ?, ?, ?)",
        (one.name, one.version, one.style, one.body.decode(), one.created_at, one.origin),
    )


def _definition(row: tuple[Any, ...]) -> Definition:
    name, version, style, body, created_at, origin = row
    return Definition(
        name=name, version=version, style=style, body=body.encode(), created_at=Millis(created_at), origin=origin
    )
