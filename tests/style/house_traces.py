"""Watch two requests in virtual time: a start over HTTP, and a message from another process.

Nothing here depends on a clock or on chance, so the figures change only with the code.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import weft
from tests.code.desk import Desk
from weft.authoring.handles import Handle
from weft.core.ids import RunId
from weft.runtime.run.actor import Actor
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.steps.codec import Codec
from weft.stores.memory import MemoryStore
from weft.testing import World
from weft.testing.faults import StoreCall, WiredStore

PACKAGE = Path(weft.__file__).parent
POLL_SECONDS = 0.05
QUIET_SECONDS = 0.01


class Trace(NamedTuple):
    """What a request passed."""

    paths: frozenset[str]
    """Files with a function that was called, relative to the package."""
    switches: int
    """How often a call went into another package than the call before it."""


class StartTrace(NamedTuple):
    """A start, and the part of it that comes before the run gets its first turn."""

    whole: Trace
    way_in: Trace


def waiting_app() -> weft.App:
    """Return an app with one workflow, which waits for a message."""
    app = weft.App("memory://")

    @app.workflow
    async def wait(name: str) -> str:
        return f"{name}: {await weft.context().receive('go', str)}"

    return app


# --- a start over HTTP ------------------------------------------------------------------------------------------------


@cache
def trace_http_start() -> StartTrace:
    """Trace a start over HTTP, from the request to its answer, in a process that has answered one before.

    The request goes to the ASGI application. Whatever else the host does meanwhile is included: the run is begun, and
    its first wait is committed. The way in ends where the run gets its turn, because the host would do the rest however
    the start had come. The store is the one in memory, and files of the test kit are left out.
    """
    app = waiting_app()
    world = World(app)
    try:
        _start(app, world, "first")
        calls, before = _Calls(), sys.getprofile()
        sys.setprofile(calls.note)
        try:
            _start(app, world, "second")
        finally:
            sys.setprofile(before)
    finally:
        world.close()
    assert calls.way_in is not None, "a start gives its run a turn"
    return StartTrace(calls.trace(), calls.way_in)


def _start(app: weft.App, world: World, run: str) -> None:
    body = json.dumps({"workflow": "wait", "id": run, "input": {"name": "Ada"}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/api/v1/runs",
        "raw_path": b"/api/v1/runs",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    world.perform(lambda: app.router(scope, receive, send))
    assert sent[0]["status"] == 201, sent


class _Calls:
    """A profiler that notes calls into Weft, and how often they go into another package than the one before."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.switches = -1
        self.way_in: Trace | None = None
        """The trace before the first turn of a run."""
        self._package = ""
        self._known: dict[str, str] = {}

    def trace(self) -> Trace:
        return Trace(frozenset(self.paths), self.switches)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if self.way_in is None and frame.f_code is Actor.turn.__code__:
            self.way_in = self.trace()
        if event == "call" and (path := self._path(frame)):
            self.paths.add(path)
            package = path.partition("/")[0]
            self.switches += package != self._package
            self._package = package

    def _path(self, frame: FrameType) -> str:
        """Return the file of a frame relative to the package; empty outside of it and in the test kit."""
        file = frame.f_code.co_filename
        if file not in self._known:
            path = Path(file)
            inside = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""
            # The world captures the output of steps whenever it is driven; a real host does that once.
            is_kit = inside.startswith("testing/") or inside == "steps/output_capture.py"
            self._known[file] = "" if is_kit else inside
        return self._known[file]


# --- a message from another process -----------------------------------------------------------------------------------


@cache
def calls_of_foreign_message() -> tuple[str, ...]:
    """Return the store calls from a send in another process to the commit in which the run's host records it.

    Calls of both processes count, the send and the commit included.
    """
    store = CountedStore()
    app = waiting_app()
    desk = Desk(app, settings=Settings(poll_seconds=POLL_SECONDS, health_seconds=0))
    desk.store = store

    async def scene() -> None:
        handle = await app.start("wait", {"name": "Ada"}, id="run")
        await asyncio.sleep(POLL_SECONDS + QUIET_SECONDS)
        client = RunService(store.share(), desk.clock, desk.ids)
        store.calls.clear()
        await Handle(client, RunId("run"), Codec.of(str)).send("go", "now")
        await handle.result()

    desk.play(scene)
    return tuple(store.calls[: store.calls.index("log.commit") + 1])


class CountedStore(MemoryStore):
    """A memory store that notes the calls of every process that shares it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def share(self) -> MemoryStore:
        return WiredStore(super().share(), self._carry)  # type: ignore[return-value]  # has every port of a store

    async def _carry(self, call: StoreCall) -> Any:
        self.calls.append(call.what)
        return call.apply()
