"""Output streams in SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from weft.core.ids import RunUid
from weft.ports.streams import Chunk, NewChunk
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_WRITE = (
    'INSERT INTO chunks (run, stream, "offset", at, place, attempt, key, body) SELECT num, ?1, '
    '(SELECT coalesce(max("offset"), 0) + 1 FROM chunks WHERE run = num AND stream = ?1), ?2, ?3, ?4, ?5, ?6 '
    "FROM runs WHERE uid = ?7 ON CONFLICT DO NOTHING"
)
_READ = (
    'SELECT "offset", at, place, attempt, body FROM chunks '
    'WHERE run = (SELECT num FROM runs WHERE uid = ?) AND stream = ? AND "offset" > ? ORDER BY "offset" LIMIT ?'
)
_LENGTHS = (
    'SELECT stream, max("offset") FROM chunks WHERE run = (SELECT num FROM runs WHERE uid = ?) '
    "GROUP BY stream ORDER BY stream"
)
SMALL_CHUNKS_MAX = 20
"""More chunks than this are written on the writer's thread."""


class SqliteStreams:
    """The output streams of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def write(self, chunks: Sequence[NewChunk]) -> None:
        rows = [(one.stream, one.at, one.by, one.attempt, one.key, one.body.decode(), one.uid) for one in chunks]

        def work(connection: apsw.Connection) -> None:
            connection.executemany(_WRITE, rows)

        if rows:
            await (self._writer.small(work) if len(rows) <= SMALL_CHUNKS_MAX else self._writer.large(work))

    async def read(self, uid: RunUid, stream: str, *, after: int, limit: int) -> Sequence[Chunk]:
        def work(connection: apsw.Connection) -> list[Chunk]:
            rows = connection.execute(_READ, (uid, stream, after, limit))
            return [
                Chunk(offset=offset, at=at, by=by, attempt=attempt, body=body.encode())
                for offset, at, by, attempt, body in rows
            ]

        return self._reader.read(work)

    async def lengths(self, uid: RunUid) -> Mapping[str, int]:
        return self._reader.read(lambda connection: dict(connection.execute(_LENGTHS, (uid,))))
