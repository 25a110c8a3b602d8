"""Stored versions of workflows in SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from weft.core.ids import Millis
from weft.errors import Conflict, NotFound
from weft.ports.store import Definition
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_SELECT = "SELECT name, version, style, body, created_at FROM definitions"


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
        def work(connection: apsw.Connection) -> Definition | None:
            found = _read(connection, name, version)
            if found is not None:
                return found
            tag = connection.execute("SELECT version FROM tags WHERE name = ? AND tag = ?", (name, version)).fetchone()
            return None if tag is None else _read(connection, name, tag[0])

        return self._reader.read(work)

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        text = f"{_SELECT} WHERE ?1 IS NULL OR name = ?1 ORDER BY name, created_at, rowid"
        return await self._reader.read_in_thread(
            lambda connection: [_definition(row) for row in connection.execute(text, (name,))]
        )

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        text = "SELECT name, version FROM definitions WHERE style = ? ORDER BY name, version"
        return self._reader.read(lambda connection: list(connection.execute(text, (style,))))

    async def tag(self, name: str, tag: str, version: str) -> None:
        def work(connection: apsw.Connection) -> None:
            if _read(connection, name, version) is None:
                raise NotFound(f"{name} has no version {version}.", name=name, version=version)
            connection.execute(
                "INSERT OR REPLACE INTO tags (name, tag, version) VALUES (?, ?, ?)", (name, tag, version)
            )

        await self._writer.small(work)

    async def tags(self, name: str) -> Mapping[str, str]:
        text = "SELECT tag, version FROM tags WHERE name = ? ORDER BY tag"
        return self._reader.read(lambda connection: dict(connection.execute(text, (name,))))


def _read(connection: apsw.Connection, name: str, version: str) -> Definition | None:
    row = connection.execute(f"{_SELECT} WHERE name = ? AND version = ?", (name, version)).fetchone()
    return None if row is None else _definition(row)


def _insert(connection: apsw.Connection, one: Definition) -> None:
    connection.execute(
        "INSERT INTO definitions (name, version, style, body, created_at) VALUES (?, ?, ?, ?, ?)",
        (one.name, one.version, one.style, one.body.decode(), one.created_at),
    )


def _definition(row: tuple[object, ...]) -> Definition:
    name, version, style, body, created_at = row
    return Definition(
        name=str(name),
        version=str(version),
        style=str(style),
        body=str(body).encode(),
        created_at=Millis(int(str(created_at))),
    )
