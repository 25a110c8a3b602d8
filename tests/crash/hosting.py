"""Hosts an app where its URL says: as users do, or, on Postgres, with a lease so short that a test can wait for it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import weft
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Engine, World
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
    """The app, with its engine, until the end of the block."""
    if not app.url.startswith("postgresql:"):
        async with app:
            yield app
        return
    store = open_store(app.url)
    await store.open()
    executor = PoolExecutor()
    world = World(store=store, clock=SystemClock(), ids=TimeIds(), executor=executor, settings=settings)
    engine = Engine(world, app.catalogue())
    app.bind(RunService(store, world.clock, world.ids, engine))
    try:
        await engine.start()
        yield app
        await engine.stop()
    finally:
        app.bind(None)
        await store.close()
        executor.close()
