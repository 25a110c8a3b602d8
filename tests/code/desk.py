"""A store that outlives processes, and processes that come and go over it: what a test of code workflows works with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import weft
from tests.code.timeless import BEGIN_MS, CountedIds, InPlace, LoopClock, play
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.code.state import CodeState
from weft.ports.store import StoredEvent
from weft.runtime.host import Host
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.stores.memory import MemoryStore

T = TypeVar("T")
Call = Coroutine[Any, Any, T]

CALM = Settings(poll_seconds=5.0, drain_seconds=1.0, look_seconds=3600.0, scan_seconds=60.0, lease_seconds=60.0)
"""Polled rarely: all that a test does reaches the engine by itself."""


class Desk:
    """One store. Each ``play`` is a process of its own, with its own loop, engine and memory."""

    def __init__(self, app: weft.App, *, settings: Settings = CALM) -> None:
        self.app = app
        self.settings = settings
        self.store = MemoryStore()
        self.ids = CountedIds()
        self.now_ms = BEGIN_MS
        self.host: Host
        self.clock: LoopClock

    def play(self, scene: Callable[[], Call[T]], *, app: weft.App | None = None, crash: bool = False) -> T:
        """Host ``app`` while the scene lasts. ``crash``: it is gone then without a word; else it shuts down."""
        return play(self._play(scene, app or self.app, crash))

    async def _play(self, scene: Callable[[], Call[T]], app: weft.App, crash: bool) -> T:
        self.clock = LoopClock(self.now_ms)
        store = self.store.share()
        given = Surroundings(store=store, clock=self.clock, ids=self.ids, executor=InPlace(), settings=self.settings)
        service = RunService(store, self.clock, self.ids)
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
            await store.hosts.leave(host.id)
            self.now_ms = self.clock.now_ms()
            app.bind(None)

    def run(self, call: Call[T], *, id: str = "run", app: weft.App | None = None) -> T:
        """Start a run, or find it, and wait for its end."""
        hosted = app or self.app

        async def scene() -> T:
            return await (await hosted.start(call, id=id)).result()

        return self.play(scene, app=hosted)

    def fail(self, call: Call[Any], *, id: str = "run", app: weft.App | None = None) -> weft.Failure:
        """Run to the end, which must be a failure; what is recorded of it."""
        try:
            result = self.run(call, id=id, app=app)
        except weft.RunFailed as failed:
            return failed.failure
        raise AssertionError(f"{id} did not fail, but returned {result!r}")

    def across_a_crash(
        self, call: Call[T], *, id: str = "run", app: weft.App | None = None, seconds: float = 0.001
    ) -> T:
        """Start a run, let its process die after a while, and let the next, of ``app``, send "go" and see it end."""

        async def before() -> None:
            await self.app.start(call, id=id)
            await asyncio.sleep(seconds)

        async def after() -> T:
            run: weft.Handle[T] = (app or self.app).get(id)
            await run.send("go")
            return await run.result()

        self.play(before, crash=True)
        return self.play(after, app=app)

    # --- what the store holds -------------------------------------------------------------------------------------

    def stored(self, id: str = "run") -> Sequence[StoredEvent]:
        return self.store.content.runs[self.store.content.ids[id]].events  # type: ignore[index]

    def log(self, id: str = "run") -> list[e.AnyEvent]:
        return [e.decode(stored.body) for stored in self.stored(id)]

    def kinds(self, id: str = "run") -> list[str]:
        return [type(event).__struct_config__.tag for event in self.log(id)]  # type: ignore[misc]

    def machine(self, id: str = "run") -> CodeMachine:
        """The run as its log says it is."""
        machine = CodeMachine.fresh(self.store.content.ids[id])  # type: ignore[index]
        for stored in self.stored(id):
            machine.evolve(e.decode(stored.body), at=stored.at)
        return machine

    def state(self, id: str = "run") -> CodeState:
        return self.machine(id).state

    def status(self, id: str = "run") -> str:
        return self.store.content.runs[self.store.content.ids[id]].status  # type: ignore[index]

    def places(self, id: str = "run") -> list[str]:
        """The locations of all that was ever recorded, in order."""
        machine = CodeMachine.fresh("0" * 32)
        found = []
        for stored in self.stored(id):
            machine.evolve(e.decode(stored.body), at=stored.at)
            entry = machine.state.entries.get(machine.state.seq)
            if entry is not None:
                found.append(entry.key)
        return found
