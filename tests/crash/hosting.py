"""Hosts an app where its URL says: as users do, or, on Postgres, with a lease so short that a test can wait for it.

``WEFT_CRASH_REDIS`` and ``WEFT_CRASH_HOT`` put a write-ahead log before Postgres, with this policy. With
``WEFT_CRASH_BREAK`` it breaks again and again.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

import weft
from weft.errors import Unavailable
from weft.ports.store import Store
from weft.ports.wal_server import WalBroken
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.stores import open_store
from weft.stores.hot.address import redis_address
from weft.stores.hot.policy import hot_policy
from weft.stores.hot.redis_wal_server import RedisWalServer
from weft.stores.hot.store import HotStore

T = TypeVar("T")
TRIES_MAX = 20
QUICK = Settings(lease_seconds=0.3, scan_seconds=0.05, poll_seconds=0.02, heartbeat_thread=True)
ANSWER_SECONDS_MAX = 5.0


def url_of(folder: Path) -> str:
    """The store of a trial: a file in its folder, or the database that the sweep was given."""
    return os.environ.get("WEFT_CRASH_URL") or f"sqlite:///{folder / 'crash.db'}"


async def until_answered(call: Callable[[], Awaitable[T]]) -> T:
    """Call again while the store does not answer, as a person would. Only for calls that may be repeated.

    The server ends transactions that are idle for a third of a lease, and on a busy machine the loop may stand still
    for so long.
    """
    for _ in range(TRIES_MAX):
        try:
            return await call()
        except Unavailable:
            continue
    return await call()


class BreakingServer(RedisWalServer):
    """A server that loses its answer to the third entry of every WAL, so that the host needs another WAL."""

    async def append(self, wal: int, n: int, entry: bytes, trim: int | None) -> None:
        await super().append(wal, n, entry, trim)
        if n == 3:
            raise WalBroken("the answer was lost")


def _store(url: str) -> Store:
    """The store of a trial, with a write-ahead log before it if the sweep was given a Redis server."""
    store, redis = open_store(url), os.environ.get("WEFT_CRASH_REDIS")
    if not redis:
        return store

    async def namespace() -> str:
        assert store.wals is not None
        return await store.wals.namespace()

    made = BreakingServer if os.environ.get("WEFT_CRASH_BREAK") else RedisWalServer
    # Longer than half of so short a lease: a machine that is busy for a moment has not lost its Redis.
    server = made(redis_address(redis), namespace, limit_s=ANSWER_SECONDS_MAX)
    hot = HotStore(store, server, policy=hot_policy(os.environ["WEFT_CRASH_HOT"]))
    return cast("Store", hot)


@asynccontextmanager
async def hosting(app: weft.App, settings: Settings = QUICK) -> AsyncIterator[weft.App]:
    """The app, with its host, until the end of the block."""
    if app.url.startswith("postgresql:"):
        async with hosted(app, settings):
            yield app
    else:
        async with app:
            yield app


@asynccontextmanager
async def hosted(app: weft.App, settings: Settings = QUICK) -> AsyncIterator[Host]:
    """The host of an app, until the end of the block or until it is killed."""
    store = _store(app.url)
    await store.open()
    executor = PoolExecutor()
    given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=executor, settings=settings)
    service = RunService(store, given.clock, given.ids)
    host = Host(given, app.catalogue(), service)
    app.bind(service)
    try:
        await host.start()
        yield host
        await host.stop()
    finally:
        app.bind(None)
        await store.close()
        executor.close()
