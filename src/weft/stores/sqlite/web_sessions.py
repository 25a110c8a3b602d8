"""Sessions of browsers in SQLite."""

from __future__ import annotations

import apsw
import msgspec

from weft.core.ids import Millis
from weft.ports.web_sessions import SessionOwner, WebSession
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_ADD = "INSERT INTO web_sessions (digest, owner, created_at, seen_at, expires_at) VALUES (?, ?, ?, ?, ?)"
_FIND = "SELECT owner, created_at, seen_at, expires_at FROM web_sessions WHERE digest = ?"


class SqliteWebSessions:
    """The sessions of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def add(self, session: WebSession) -> None:
        owner = msgspec.json.encode(session.owner).decode()

        def work(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM web_sessions WHERE expires_at <= ?", (session.created_at,))
            values = (session.digest, owner, session.created_at, session.seen_at, session.expires_at)
            connection.execute(_ADD, values)

        await self._writer.small(work)

    async def find(self, digest: str) -> WebSession | None:
        row = self._reader.read(lambda connection: connection.execute(_FIND, (digest,)).fetchone())
        if row is None:
            return None
        owner, created_at, seen_at, expires_at = row
        return WebSession(
            digest=digest,
            owner=msgspec.json.decode(owner, type=SessionOwner),
            created_at=created_at,
            seen_at=seen_at,
            expires_at=expires_at,
        )

    async def touch(self, digest: str, *, now: Millis) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.execute("UPDATE web_sessions SET seen_at = ? WHERE digest = ?", (now, digest))

        await self._writer.small(work)

    async def end(self, digest: str) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute("DELETE FROM web_sessions WHERE digest = ?", (digest,))
            return bool(connection.changes())

        return await self._writer.small(work)
