"""A real server on a free port, and a client that notes which routes it used."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

import weft
from weft.authoring.served_app import Served
from weft.server.api import Api
from weft.server.identity import Gate
from weft.server.limits import RequestLimits
from weft.server.listener import Listener
from weft.server.problems import RequestRefused
from weft.server.route_table import ROUTES
from weft.server.router import Router
from weft.server.web.files import WebFiles

F = TypeVar("F", bound=Callable[..., None])
API = "/api/v1"
SECONDS_MAX = 120
LONG_WAIT = re.compile(r"/result\?wait=[12]0$")
_router = Router(ROUTES)
_used: set[str] = set()


def covers(*operations: str) -> Callable[[F], F]:
    """Say which routes a test is about; it fails if it does not use them."""

    def decorate(test: F) -> F:
        @functools.wraps(test)
        def wrapped(*args: Any, **options: Any) -> None:
            _used.clear()
            test(*args, **options)
            assert set(operations) <= _used, f"{set(operations) - _used} were not asked for"

        return wrapped  # type: ignore[return-value]

    return decorate


def used(method: str, path: str) -> None:
    """Note that a route is asked for."""
    with contextlib.suppress(RequestRefused):
        _used.add(_router.find(method, path.partition("?")[0].encode()).route.name)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.raw)

    @property
    def code(self) -> str:
        """The code of a problem."""
        assert self.headers["content-type"] == "application/problem+json", self.raw
        assert self.json["status"] == self.status
        return str(self.json["code"])


class Server:
    """A server that runs, as its clients see it."""

    def __init__(self, port: int, app: weft.App, api: Api, loop: asyncio.AbstractEventLoop) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.app = app
        self.api = api
        self.loop = loop

    def inside(self, coroutine: Any) -> Any:
        """Do something on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(SECONDS_MAX)

    def ask(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Answer:
        """One request; names of headers with underscores."""
        used(method, path)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        data = raw
        if body is not None:
            data = msgspec.json.encode(body)
            sent.setdefault("content-type", "application/json")
        try:
            connection.request(method, path, data, sent)
            answered = connection.getresponse()
            names = {name.lower(): value for name, value in answered.getheaders()}
            return Answer(answered.status, names, answered.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        answer = self.ask("GET", path, **headers)
        while answer.status == 202 and LONG_WAIT.search(path):  # a busy machine may need several waits
            answer = self.ask("GET", path, **headers)
        return answer

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)

    # --- what tests say over and over -----------------------------------------------------------------------------

    def start(self, workflow: str, id: str | None = None, **given: Any) -> str:
        """Start a run; its id."""
        answer = self.post(f"{API}/runs", {"workflow": workflow, "id": id, "input": given})
        assert answer.status in (200, 201), answer.raw
        return str(answer.json["id"])

    def result(self, run: str, wait: float = 10) -> Any:
        answer = self.get(f"{API}/runs/{quoted(run)}/result?wait={wait}")
        assert answer.status == 200, answer.raw
        return answer.json

    def until(self, run: str, kind: str) -> int:
        """Wait for an event of this kind; its number."""
        seq = 0
        while True:
            page = self.get(f"{API}/runs/{quoted(run)}/events?after={seq}").json
            for event in page["events"]:
                seq = event["seq"]
                if event["kind"] == kind:
                    return seq
            time.sleep(0.005)


def quoted(text: str) -> str:
    return quote(text, safe="")


@contextlib.contextmanager
def serving(
    app: weft.App, *, limits: RequestLimits | None = None, gate: Gate | None = None, web: WebFiles | None = None
) -> Iterator[Server]:
    """Host the app and its API on a thread of their own."""
    bound = socket.create_server(("127.0.0.1", 0))
    ready = threading.Event()
    found: list[Server] = []
    listeners: list[Listener] = []
    errors: list[BaseException] = []

    async def main() -> None:
        async with app:
            api = Api(Served(app.registered), lambda: app.service, limits=limits, gate=gate, web=web)
            listeners.append(Listener(api, drain_seconds=5))
            found.append(Server(bound.getsockname()[1], app, api, asyncio.get_running_loop()))
            ready.set()
            await listeners[0].run(bound)
            await api.services.close()

    def host() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=host, name="server")
    thread.start()
    assert ready.wait(SECONDS_MAX)
    try:
        if found:
            yield found[0]
    finally:
        if listeners:
            listeners[0].stop()
        thread.join(SECONDS_MAX)
        bound.close()
        assert not thread.is_alive()
    if errors:
        raise errors[0]
