"""The Redis server beside the store of a host: its report, and the buckets in which requests are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from weft.ports.store import Store
from weft.runtime.redis_watch import RedisReport, RedisWatch
from weft.runtime.service import RunService
from weft.stores import RedisUse, wal_server
from weft.stores.redis_use import is_postgres

if TYPE_CHECKING:
    from weft.stores.hot.store import HotStore
    from weft.stores.redis.buckets import RedisBuckets


class HostRedis:
    """What a host does with its Redis server, besides the store. One per host."""

    def __init__(self, use: RedisUse, store: Store) -> None:
        """``store`` is open."""
        self._use = use
        self._hot: HotStore | None = _hot_store(store) if use.hot else None
        self._server = self._hot.server if self._hot is not None else wal_server(store, use)
        if store.wals is not None:
            store.wals.server = self._server
        self._store = store
        self._watch = RedisWatch(self._server, use.hot, self._problem, wakes=is_postgres(store.url))
        self._buckets: RedisBuckets | None = None

    async def open(self, service: RunService) -> None:
        """Ask the server what it is, and count requests in it. Raises UsageError if it cannot be used."""
        from weft.stores.redis.buckets import RedisBuckets  # noqa: PLC0415 - only with the extra
        from weft.stores.redis.namespace import namespace_of  # noqa: PLC0415

        await self._watch.check()
        self._buckets = service.rate_buckets = RedisBuckets(self._use.url, lambda: namespace_of(self._store))

    def start_reporting(self, service: RunService) -> None:
        """Report what the server is: in the log, in the row of the host, and in its health."""
        assert service.local is not None
        host = service.local.host

        async def describe(report: RedisReport) -> None:
            about: dict[str, Any] = msgspec.to_builtins(report)
            await self._store.hosts.describe(host, {"redis": about})

        if service.work is not None and (counts := service.work.stream_counts) is not None:
            self._watch.streams = lambda: (counts.happened["bad"], counts.problem)
        service.status.redis = lambda: self._watch.report
        self._watch.start(describe)

    async def stop_reporting(self) -> None:
        """Stop reporting, before the host leaves."""
        await self._watch.close()

    async def close(self) -> None:
        """Close the connections. That of the hot path is closed with its store."""
        await self._watch.close()
        if self._buckets is not None:
            await self._buckets.close()
        if self._hot is None:
            await self._server.close()

    def _problem(self) -> str:
        """Return why the hot path is off; empty if it is on."""
        if self._hot is None or self._hot.hot_lane.wal is not None:
            return ""
        recognition = self._hot.keeper.recognition
        known = recognition.problem if recognition is not None else ""
        return known or self._hot.hot_lane.broken or "A write-ahead log is being opened."


def _hot_store(store: Store) -> HotStore:
    from weft.stores.hot.store import HotStore  # noqa: PLC0415 - only with the extra

    assert isinstance(store, HotStore)
    return store
