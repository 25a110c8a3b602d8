"""Hosts an app where its URL says: as users do, or, on Postgres, with a lease so short that a test can wait for it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import weft
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host, Surroundings
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.worker.executor import PoolExecutor
from weft.stores import open_store

QUICK = Settings(lease_seconds=0.3, scan_seconds=0.05, poll_seconds=0.02, heartbeat_thread=True)


def url_of(folder: Path) -> str:
    """The store of a trial: a file in its folder, or the database that the sweep was given."""
    return os.environ.get("WEFT_CRASH_URL") or f"sqlite:///{folder / 'crash.db'}"


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
    store = open_store(app.url)
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
