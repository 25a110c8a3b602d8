"""Memos in SQLite."""

from __future__ import annotations

import apsw

from weft.core.ids import Millis, RunId
from weft.ports.memos import Memo
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_GET = "SELECT output, run, at, until FROM memos WHERE key = ? AND (until IS NULL OR until > ?)"
_PUT = "INSERT OR REPLACE INTO memos (key, output, run, at, until) VALUES (?, ?, ?, ?, ?)"


class SqliteMemos:
    """The memos of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def get(self, key: str, *, now: Millis) -> Memo | None:
        def work(connection: apsw.Connection) -> Memo | None:
            row = connection.execute(_GET, (key, now)).fetchone()
            if row is None:
                return None
            output, run, at, until = row
            return Memo(key=key, output=output.encode(), run=RunId(run), at=at, until=until)

        return self._reader.read(work)

    async def put(self, memo: Memo) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.execute(_PUT, (memo.key, memo.output.decode(), memo.run, memo.at, memo.until))

        await self._writer.small(work)
