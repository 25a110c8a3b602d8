"""A ``RunService`` over a server. It reads the store behind it; what needs the store itself is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from weft.authoring.remote import Remote
from weft.authoring.remote_store import RemoteStore
from weft.extras import require
from weft.ports.store import Store
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.service import RunService


class RemoteRunService(RunService):
    """Reads runs through a server. ``remote`` gives it commands."""

    def __init__(self, store: RemoteStore) -> None:
        self.remote = store.remote
        self.tenant = store.tenant
        super().__init__(cast("Store", store), SystemClock(), TimeIds())


@asynccontextmanager
async def open_remote(url: str, key: str | None) -> AsyncIterator[RemoteRunService]:
    """Connect to a server. Raises UsageError, NotAllowed, Unavailable."""
    require("http", "A command for a server")
    store = RemoteStore(Remote(url, key))
    try:
        await store.open()
        yield RemoteRunService(store)
    finally:
        await store.close()
