"""Store blobs in the database file itself, so that a store is one file."""

from __future__ import annotations

import hashlib

import apsw
import msgspec

from weft.core.ids import Millis
from weft.core.values import blobs_in
from weft.errors import Corrupt, NotFound
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

SMALL_BYTES_MAX = 64 * 1024
"""Larger blobs are hashed, written and read on another thread."""

# Mail and memos have no index of the blobs that they name, so their text is searched.
_NAMING = (
    "SELECT body FROM inbox WHERE instr(body, 'cas://sha256:') "
    "UNION ALL SELECT output FROM memos WHERE instr(output, 'cas://sha256:')"
)
_UNUSED = (
    "SELECT hash FROM blobs b WHERE touched <= ? AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.hash = b.hash) "
    "AND NOT EXISTS (SELECT 1 FROM blob_links l WHERE l.child = b.hash) "
    "AND hash NOT IN (SELECT value FROM json_each(?)) LIMIT ?"
)


class SqliteBlobs:
    """The blobs of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, data: bytes) -> str:
        def work(connection: apsw.Connection) -> str:
            digest = hashlib.sha256(data).hexdigest()
            connection.execute("UPDATE blobs SET touched = NULL WHERE hash = ?", (digest,))
            if not connection.changes():
                connection.execute("INSERT INTO blobs (hash, data) VALUES (?, ?)", (digest, data))
                links = [(digest, child) for child in set(blobs_in(data))]
                connection.executemany("INSERT OR IGNORE INTO blob_links (parent, child) VALUES (?, ?)", links)
            return digest

        if len(data) > SMALL_BYTES_MAX:
            return await self._writer.large(work)
        return await self._writer.before_commit(work)

    async def get(self, digest: str) -> bytes:
        size = self._reader.read(lambda connection: _blob_size(connection, digest))
        if size <= SMALL_BYTES_MAX:
            return self._reader.read(lambda connection: _blob_content(connection, digest))
        return await self._reader.read_in_thread(lambda connection: _blob_content(connection, digest))

    async def sweep(self, *, now: Millis, untouched_ms: int, limit: int = 500) -> int:
        """Delete unused blobs. Their age counts from the first sweep after ``put``, because ``put`` has no clock."""

        def work(connection: apsw.Connection) -> int:
            connection.execute("UPDATE blobs SET touched = ? WHERE touched IS NULL", (now,))
            named = {digest for (text,) in connection.execute(_NAMING) for digest in blobs_in(text.encode())}
            values = (now - untouched_ms, msgspec.json.encode(sorted(named)).decode(), limit)
            unused = [(digest,) for (digest,) in connection.execute(_UNUSED, values)]
            connection.executemany("DELETE FROM blobs WHERE hash = ?", unused)
            connection.executemany("DELETE FROM blob_links WHERE parent = ?", unused)
            return len(unused)

        return await self._writer.large(work)


def _blob_size(connection: apsw.Connection, digest: str) -> int:
    row = connection.execute("SELECT length(data) FROM blobs WHERE hash = ?", (digest,)).fetchone()
    if row is None:
        raise NotFound(f"No blob has the digest {digest}.", digest=digest)
    return int(row[0])


def _blob_content(connection: apsw.Connection, digest: str) -> bytes:
    row = connection.execute("SELECT data FROM blobs WHERE hash = ?", (digest,)).fetchone()
    if row is None:
        raise NotFound(f"No blob has the digest {digest}.", digest=digest)
    data: bytes = row[0]
    if hashlib.sha256(data).hexdigest() != digest:
        raise Corrupt(f"The content of blob {digest} does not match its digest.", digest=digest)
    return data
