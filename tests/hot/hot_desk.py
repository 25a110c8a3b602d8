"""A desk whose processes have a write-ahead log before their store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
from tests.code.desk import CALM, Call, Desk, T
from tests.code.timeless import InPlace, LoopClock
from tests.hot.memory_server import Disk, MemoryWalServer
from weft.core import events as e
from weft.runtime.host import Host
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.stores.hot.entries import decode
from weft.stores.hot.policy import END, EVENT, HotPolicy
from weft.stores.hot.store import HotStore
from weft.stores.memory import MemoryStore

__all__ = ["END", "EVENT", "HotDesk"]


class HotDesk(Desk):
    """One store and one WAL server. Each ``play`` is a process of its own."""

    def __init__(
        self, app: weft.App, *, policy: HotPolicy = END, settings: Settings = CALM, store: MemoryStore | None = None
    ) -> None:
        super().__init__(app, settings=settings)
        self.policy = policy
        self.store = store or MemoryStore()
        self.disk = Disk()
        self.hot: HotStore

    async def _play(self, scene: Callable[[], Call[T]], app: weft.App, crash: bool) -> T:
        self.clock = LoopClock(self.now_ms)
        durable = self.store.share()
        store = self.hot = HotStore(durable, MemoryWalServer(self.disk), policy=self.policy)
        await store.open()
        given = Surroundings(
            store=store,  # type: ignore[arg-type]
            clock=self.clock,
            ids=self.ids,
            executor=InPlace(),
            settings=self.settings,
        )
        service = RunService(store, self.clock, self.ids)  # type: ignore[arg-type]
        self.host = host = Host(given, app.catalogue(), service)
        app.bind(service)
        for run in self.store.content.open.values():
            run.idle_until = None  # read back at once, not when mail or time asks for it
        try:
            await host.start()
            found = await scene()
            if not crash:
                await host.stop()
            return found
        finally:
            await host.kill()
            await store.close()
            await durable.hosts.leave(host.id)
            self.now_ms = self.clock.now_ms()
            app.bind(None)

    # --- what Redis holds -----------------------------------------------------------------------------------------

    def entries(self) -> list[Any]:
        """The entries of all WALs on the server, oldest first."""
        return [entry for wal in self.disk.wals.values() for entry in wal.entries.values()]

    def hopped(self) -> list[str]:
        """The kinds of all events that were ever written to a WAL, in order."""
        appends = [append for entry in self.disk.written for append in decode(entry)]
        return [type(e.decode(event.body)).__struct_config__.tag for append in appends for event in append.events]  # type: ignore[misc]
