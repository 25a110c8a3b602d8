"""A store in a Postgres database, for many hosts.

With ``durability="full"``, commits survive a power failure. With ``"fast"``, they survive the end of the process, but a
power failure or a crash of the server may lose the last commits (never one from the middle). A connection pooler must
give every client its own session. A store belongs to the event loop that opened it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.ports.store import StoreDetails
from weft.stores.blobs import BlobContent, IndexedBlobs
from weft.stores.postgres.access import PostgresAccess
from weft.stores.postgres.blob_index import PostgresIndex
from weft.stores.postgres.blobs import PostgresBlobs
from weft.stores.postgres.budgets import PostgresBudgets
from weft.stores.postgres.connection import Connection, close_session
from weft.stores.postgres.definitions import PostgresDefinitions
from weft.stores.postgres.directory import PostgresDirectory
from weft.stores.postgres.hints import Hints, without_flush
from weft.stores.postgres.holds import PostgresHolds
from weft.stores.postgres.hosts import PostgresHosts
from weft.stores.postgres.inboxes import PostgresInboxes
from weft.stores.postgres.log import PostgresLog
from weft.stores.postgres.memos import PostgresMemos
from weft.stores.postgres.policies import PostgresPolicies
from weft.stores.postgres.pool import Pool, fetch_value
from weft.stores.postgres.retention import PostgresRetention
from weft.stores.postgres.saved_views import PostgresSavedViews
from weft.stores.postgres.schema import NEWEST, apply_migrations
from weft.stores.postgres.session import Session, address_of, connect, translate_errors
from weft.stores.postgres.starts import PostgresStarts
from weft.stores.postgres.step_logs import PostgresStepLogs
from weft.stores.postgres.streams import PostgresStreams
from weft.stores.postgres.tags import PostgresTags
from weft.stores.postgres.tasks import PostgresTasks
from weft.stores.postgres.tool_pins import PostgresToolPins
from weft.stores.postgres.wals import PostgresWals
from weft.stores.postgres.web_sessions import PostgresWebSessions

if TYPE_CHECKING:
    from weft.stores.redis.hints import RedisHints

_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
    "WHERE c.relnamespace = 'weft'::regnamespace AND c.relkind = 'r'"
)
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
    policies: PostgresPolicies
    tool_pins: PostgresToolPins
    wals: PostgresWals
    streams: PostgresStreams
    step_logs: PostgresStepLogs
    access: PostgresAccess
    memos: PostgresMemos
    retention: PostgresRetention
    holds: PostgresHolds
    saved_views: PostgresSavedViews
    web_sessions: PostgresWebSessions
    starts: PostgresStarts
    budgets: PostgresBudgets

    def __init__(
        self,
        url: str,
        *,
        durability: str = "full",
        content: BlobContent | None = None,
        redis: str | None = None,
        heard: Callable[[], None] | None = None,
    ) -> None:
        """Create a store that is not connected yet. ``content`` is the place for blobs, by default the database.

        With ``redis``, its URL, hints between processes go over Redis. ``heard`` is called when one arrives.
        """
        self._address = address_of(url, durability)
        self.url = self._address.safe_url
        self._content = content
        self._redis = redis
        self._heard = heard
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
        hints = Hints(self._redis_hints(), self._heard)
        host_connection = Connection(self._address, on_open=self._listen_for_hints)
        hints.bind(host_connection)
        pool = Pool(self._address, POOL_SIZE)
        await pool.adopt(session)
        self._parts = (hints, host_connection, Connection(self._address), pool)
        self._bind_parts()
        self.hosts.record_server_time(before, float(server_ms))
        hints.start()

    def _redis_hints(self) -> RedisHints | None:
        if self._redis is None:
            return None
        # Imported here, because a store without Redis does not need its client.
        from weft.stores.redis.hints import RedisHints  # noqa: PLC0415
        from weft.stores.redis.namespace import namespace_of  # noqa: PLC0415

        return RedisHints(self._redis, lambda: namespace_of(self))

    async def details(self) -> StoreDetails:
        assert self._parts is not None
        size = await fetch_value(self._parts[3], _SIZE)
        return StoreDetails(kind="postgres", schema=NEWEST, size_bytes=int(size))

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

    async def _listen_for_hints(self, session: Session) -> None:
        assert self._parts is not None
        await self._parts[0].listen(session)
        self.hosts.lost_sight()

    def _bind_parts(self) -> None:
        assert self._parts is not None
        hints, host_connection, writer, pool = self._parts

        def limit(lease_ms: int) -> None:
            host_connection.lease_ms = writer.lease_ms = lease_ms
            pool.limit(lease_ms)

        def new_connection() -> Connection:
            connection = Connection(self._address, on_open=without_flush)
            connection.lease_ms = host_connection.lease_ms
            return connection

        self.wals = PostgresWals(pool, hints)
        self.log = PostgresLog(writer, pool, hints, self.wals.in_use)
        self.directory = PostgresDirectory(pool)
        self.inboxes = PostgresInboxes(pool, self.directory, hints)
        self.hosts = PostgresHosts(host_connection, hints, limit, new_connection)
        content = self._content
        self.blobs = PostgresBlobs(pool) if content is None else IndexedBlobs(PostgresIndex(pool), content)
        self.tasks = PostgresTasks(pool, hints)
        self.definitions = PostgresDefinitions(pool)
        self.tags = PostgresTags(pool)
        self.policies = PostgresPolicies(pool)
        self.tool_pins = PostgresToolPins(pool)
        self.streams = PostgresStreams(pool)
        self.step_logs = PostgresStepLogs(pool)
        self.access = PostgresAccess(pool)
        self.memos = PostgresMemos(pool)
        self.retention = PostgresRetention(pool)
        self.holds = PostgresHolds(pool)
        self.saved_views = PostgresSavedViews(pool)
        self.web_sessions = PostgresWebSessions(pool)
        self.starts = PostgresStarts(pool, hints)
        self.budgets = PostgresBudgets(pool)
