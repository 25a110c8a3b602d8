"""A store in a Postgres database, for many hosts.

With ``durability="full"``, commits survive a power failure. With ``"fast"``, they survive the end of the process, but a
power failure or a crash of the server may lose the last commits (never one from the middle). A connection pooler must
give every client its own session. A store belongs to the event loop that opened it.
"""

from __future__ import annotations

import time

from weft.stores.blobs import BlobContent, IndexedBlobs
from weft.stores.postgres.access import PostgresAccess
from weft.stores.postgres.blob_index import PostgresIndex
from weft.stores.postgres.blobs import PostgresBlobs
from weft.stores.postgres.definitions import PostgresDefinitions
from weft.stores.postgres.directory import PostgresDirectory
from weft.stores.postgres.hints import Hints, without_flush
from weft.stores.postgres.holds import PostgresHolds
from weft.stores.postgres.hosts import PostgresHosts
from weft.stores.postgres.inboxes import PostgresInboxes
from weft.stores.postgres.log import PostgresLog
from weft.stores.postgres.memos import PostgresMemos
from weft.stores.postgres.pool import Connection, Pool, close_session
from weft.stores.postgres.retention import PostgresRetention
from weft.stores.postgres.schema import apply_migrations
from weft.stores.postgres.session import Session, address_of, connect, translate_errors
from weft.stores.postgres.streams import PostgresStreams
from weft.stores.postgres.tags import PostgresTags
from weft.stores.postgres.tasks import PostgresTasks

POOL_SIZE = 4
"""The number of connections for everything except commits and hosts, which have one each."""


class PostgresStore:
    """All ports over one Postgres database."""

    log: PostgresLog
    directory: PostgresDirectory
    inboxes: PostgresInboxes
    hosts: PostgresHosts
    blobs: PostgresBlobs | IndexedBlobs
    tasks: PostgresTasks
    definitions: PostgresDefinitions
    tags: PostgresTags
    streams: PostgresStreams
    access: PostgresAccess
    memos: PostgresMemos
    retention: PostgresRetention
    holds: PostgresHolds

    def __init__(self, url: str, *, durability: str = "full", content: BlobContent | None = None) -> None:
        """Create a store that is not connected yet. ``content`` is the place for blobs, by default the database."""
        self._address = address_of(url, durability)
        self.url = self._address.safe_url
        self._content = content
        self._parts: tuple[Hints, Connection, Connection, Pool] | None = None

    async def open(self) -> None:
        if self._parts is not None:
            return
        session = await connect(self._address)
        try:
            await apply_migrations(session, self._address)
            before = time.time()
            with translate_errors(self._address):
                server_ms = await session.fetchval("SELECT extract(epoch FROM clock_timestamp()) * 1000")
        except BaseException:
            await close_session(session)
            raise
        hints = Hints()
        host_connection = Connection(self._address, on_open=self._listen)
        hints.bind(host_connection)
        pool = Pool(self._address, POOL_SIZE)
        await pool.adopt(session)
        self._parts = (hints, host_connection, Connection(self._address), pool)
        self._bind()
        self.hosts.record_server_time(before, float(server_ms))

    @property
    def offset_ms(self) -> int:
        return self.hosts.offset_ms

    async def close(self) -> None:
        if self._parts is None:
            return
        hints, host_connection, writer, pool = self._parts
        self._parts = None
        await hints.close()
        for connection in (writer, host_connection, pool):
            await connection.close()

    async def _listen(self, session: Session) -> None:
        assert self._parts is not None
        await self._parts[0].listen(session)
        self.hosts.lost_sight()

    def _bind(self) -> None:
        assert self._parts is not None
        hints, host_connection, writer, pool = self._parts

        def limit(lease_ms: int) -> None:
            host_connection.lease_ms = writer.lease_ms = lease_ms
            pool.limit(lease_ms)

        def new_connection() -> Connection:
            connection = Connection(self._address, on_open=without_flush)
            connection.lease_ms = host_connection.lease_ms
            return connection

        self.log = PostgresLog(writer, pool, hints)
        self.directory = PostgresDirectory(pool)
        self.inboxes = PostgresInboxes(pool, self.directory, hints)
        self.hosts = PostgresHosts(host_connection, hints, limit, new_connection)
        content = self._content
        self.blobs = PostgresBlobs(pool) if content is None else IndexedBlobs(PostgresIndex(pool), content)
        self.tasks = PostgresTasks(pool, hints)
        self.definitions = PostgresDefinitions(pool)
        self.tags = PostgresTags(pool)
        self.streams = PostgresStreams(pool)
        self.access = PostgresAccess(pool)
        self.memos = PostgresMemos(pool)
        self.retention = PostgresRetention(pool)
        self.holds = PostgresHolds(pool)
