"""A store in memory and its hosts, each with an app of its own, and processes that host nothing. Time is not real."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import weft
from tests.code.timeless import CountedIds, InPlace, LoopClock
from weft.runtime.host import Host
from weft.runtime.host_description import describe_process
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.stores.memory import MemoryStore


class Store:
    """A store and its hosts, each with an app of its own."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self.ids = CountedIds()

    @asynccontextmanager
    async def host(self, app: weft.App, *, dies: bool = False, is_missed: bool = True) -> AsyncIterator[RunService]:
        """Host an app. ``dies``: it is gone at the end of the block without a word.

        ``is_missed``: others know it at once, as where the store sees that its lock is free. Else its lease must pass.
        """
        store, clock = self.memory.share(), LoopClock()
        catalogue = app.catalogue()
        about = describe_process(catalogue.programs(), [], catalogue.style_of, catalogue.described_steps())
        given = Surroundings(
            store=store,
            clock=clock,
            ids=self.ids,
            executor=InPlace(),
            settings=Settings(drain_seconds=1.0),
            about=about,
        )
        service = RunService(store, clock, self.ids)
        host = Host(given, catalogue, service)
        app.bind(service)
        try:
            await host.start()
            yield service
            if not dies:
                await host.stop()
        finally:
            await host.kill()
            if is_missed:
                await store.hosts.leave(host.id)
            app.bind(None)

    def without_host(self, app: weft.App) -> RunService:
        """The service of a process that knows the code of an app and hosts nothing, as the command line."""
        service = RunService(self.memory.share(), LoopClock(), self.ids)
        service.declared = app.catalogue()
        return service
