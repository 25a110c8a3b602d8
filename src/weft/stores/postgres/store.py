"""A store in a Postgres database, for many hosts.

What was committed survives loss of power (``durability="full"``); with ``"fast"`` it survives the process, and after a
loss of power or a crash of the server the last commits may be missing, but never one from the middle. A pooler between
must give every client a session of its own. To be used on the event loop that opened it.
"""

from __future__ import annotations

import time

from weft.stores.blobs import Content, IndexedBlobs
from weft.stores.postgres.access import PostgresAccess
from weft.stores.postgres.blob_index import PostgresIndex
from weft.stores.postgres.blobs import PostgresBlobs
from weft.stores.postgres.connection import Connection, address_of, connect, speaking_of
from weft.stores.postgres.definitions import PostgresDefinitions
from weft.stores.postgres.directory import PostgresDirectory
from weft.stores.postgres.hints import Hints, without_flush
from weft.stores.postgres.hosts import PostgresHosts
from weft.stores.postgres.lines import Line, Lines, hang_up
from weft.stores.postgres.log import PostgresLog
from weft.stores.postgres.memos import PostgresMemos
from weft.stores.postgres.schema import bring_up
from weft.stores.postgres.streams import PostgresStreams
from weft.stores.postgres.tasks import PostgresTasks

LINES = 4
"""For everything but commits and hosts, which have a line each."""


class PostgresStore:
    """All ports over one database."""

    log: PostgresLog
    directory: PostgresDirectory
    hosts: PostgresHosts
    blobs: PostgresBlobs | IndexedBlobs
    tasks: PostgresTasks
    definitions: PostgresDefinitions
    streams: PostgresStreams
    access: PostgresAccess
    memos: PostgresMemos

    def __init__(self, url: str, *, durability: str = "full", content: Content | None = None) -> None:
        """``content``: where blobs are kept; None: in the database."""
        self._address = address_of(url, durability)
        self.url = self._address.shown
        self._content = content
        self._parts: tuple[Hints, Line, Line, Lines] | None = None

    async def open(self) -> None:
        if self._parts is not None:
            return
        connection = await connect(self._address)
        try:
            await bring_up(connection, self._address)
            before = time.time()
            with speaking_of(self._address):
                there_ms = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp()) * 1000")
        except BaseException:
            await hang_up(connection)
            raise
        hints = Hints()
        pulse = Line(self._address, opened=self._listen)
        hints.bind(pulse)
        lines = Lines(self._address, LINES)
        await lines.adopt(connection)
        self._parts = (hints, pulse, Line(self._address), lines)
        self._bind()
        self.hosts.note_time(before, float(there_ms))

    @property
    def offset_ms(self) -> int:
        return self.hosts.offset_ms

    async def close(self) -> None:
        if self._parts is None:
            return
        hints, pulse, writer, lines = self._parts
        self._parts = None
        await hints.close()
        for line in (writer, pulse, lines):
            await line.close()

    async def _listen(self, connection: Connection) -> None:
        assert self._parts is not None
        await self._parts[0].listen(connection)
        self.hosts.lost_sight()

    def _bind(self) -> None:
        assert self._parts is not None
        hints, pulse, writer, lines = self._parts

        def limit(lease_ms: int) -> None:
            pulse.lease_ms = writer.lease_ms = lease_ms
            lines.limit(lease_ms)

        def new_line() -> Line:
            line = Line(self._address, opened=without_flush)
            line.lease_ms = pulse.lease_ms
            return line

        self.log = PostgresLog(writer, lines, hints)
        self.directory = PostgresDirectory(lines)
        self.hosts = PostgresHosts(pulse, hints, limit, new_line)
        content = self._content
        self.blobs = PostgresBlobs(lines) if content is None else IndexedBlobs(PostgresIndex(lines), content)
        self.tasks = PostgresTasks(lines, hints)
        self.definitions = PostgresDefinitions(lines)
        self.streams = PostgresStreams(lines)
        self.access = PostgresAccess(lines)
        self.memos = PostgresMemos(lines)
