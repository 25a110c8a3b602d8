"""``weft serve``: the engine, the API and a status page in one process. ``weft worker``: steps only, of others' runs.

Without keys the server binds to loopback addresses and to nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from weft.authoring.app import App, cancelled_by_others
from weft.authoring.serving import QueueCatalogue, WorkerCatalogue
from weft.cli.app_file import load_app
from weft.cli.messages import say
from weft.cli.place import project_settings
from weft.errors import NotAllowed, Unavailable, UsageError
from weft.extras import require
from weft.server.identity import is_loopback
from weft.server.logs import log_to
from weft.server.settings import jwt_settings_here
from weft.stores import open_store

if TYPE_CHECKING:
    from weft.server.api import Api

DRAIN_SECONDS = 10
BACKLOG = 2_048
SWITCH_SECONDS = 0.001
"""How long the store's thread may have to wait for its turn in Python, which it does twice for every commit."""
OPEN_NOTICE = "open to every program on this machine, and to nobody else: there are no keys yet"
CLOSED_NOTICE = "every request needs a key: weft keys"


def serve(files: Sequence[str], *, host: str, port: int, queues: Sequence[str], url: str | None) -> None:
    """Host the apps and answer requests until a signal comes."""
    require("server", "weft serve")
    app = hosted_app(files, url, "weft serve")
    if queues:
        app.host_only(partial(QueueCatalogue, queues=list(queues)))
    if not is_loopback(host):
        _run(_refuse_open(app.url, host))
    bound = _bind(host, port)
    log_to(sys.stderr)
    _run(_serve(app, bound))


def work(files: Sequence[str], *, queues: Sequence[str], url: str | None) -> None:
    """Perform steps of these queues until a signal comes."""
    app = hosted_app(files, url, "weft worker")
    app.host_only(partial(WorkerCatalogue, queues=list(queues)))
    log_to(sys.stderr)
    _run(_work(app, queues))


def hosted_app(files: Sequence[str], url: str | None, command: str) -> App:
    """The app of one file; several become one, over one store. Raises UsageError."""
    named = list(files) or [name for name in [project_settings().get("app")] if name]
    apps = [load_app(name, command).app for name in named]
    if len(apps) == 1:
        app = apps[0]
    else:
        urls = {one.url for one in apps}
        if url is None and len(urls) > 1:
            raise UsageError(f"The apps keep their runs in {len(urls)} stores.", hint="Name one: --url")
        app = App(url or (urls.pop() if urls else None))
        app.include(*apps)
    if url is not None:
        app.url = url
    return app


def _bind(host: str, port: int) -> socket.socket:
    """Taken before anything is hosted: who cannot be reached should not begin to work."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host.strip("[]"), port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise Unavailable(
            f"Port {port} of {host} cannot be had: {os.strerror(error.errno or 0)}.", hint="Another one: --port"
        ) from error
    bound.set_inheritable(False)
    return bound


def _run(main: Any) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    # The loop that servers of this kind use; asyncio's own where there is none.
    factory: Any = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(main)
        except asyncio.CancelledError:
            raise cancelled_by_others() from None


async def _refuse_open(url: str, host: str) -> None:
    """Nothing is bound to an address that others can reach before there is a way to tell who they are."""
    store = open_store(url)
    await store.open()
    try:
        if await store.access.is_open() and jwt_settings_here() is None:
            raise NotAllowed(
                f"Without keys the server answers on this machine only, not on {host}.",
                hint="Make a key: weft keys create NAME --scope admin. And put something that speaks TLS before it.",
            )
    finally:
        await store.close()


async def _serve(app: App, bound: socket.socket) -> None:
    from weft.server.buffered_http import allow_many_files
    from weft.server.listener import Listener

    allow_many_files()
    api = app.router
    async with app, _closing(api):
        address, port = bound.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        notice = OPEN_NOTICE if await api.services.is_open() else CLOSED_NOTICE
        say(f"serving http://{shown}:{port} on {app.service.store.url}", notice)
        api.services.local()
        await Listener(api, drain_seconds=DRAIN_SECONDS).run(bound)
        say("stopping: running steps may finish, everything else goes on when you serve again")


@contextlib.asynccontextmanager
async def _closing(api: Api) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await api.services.close()


async def _work(app: App, queues: Sequence[str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with app:
        say(f"performing steps of {', '.join(queues)} on {app.service.store.url}")
        await stop.wait()
        say("stopping: running steps may finish")
