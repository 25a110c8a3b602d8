"""``weft serve`` and ``weft worker``.

The first hosts the engine, the API and a status page; the second performs steps of runs that other processes host. Both
run in one process, or in several that share a store. Without API keys, the server binds only to loopback addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from weft.authoring.app import App, hosting_cancelled
from weft.authoring.app_catalogue import QueueCatalogue, WorkerCatalogue
from weft.cli.app_file import load_app
from weft.cli.messages import say
from weft.cli.processes import ChildCommand, ChildReport, ParentProcess, Supervisor, check_processes
from weft.cli.store_access import project_settings
from weft.errors import NotAllowed, Unavailable, UsageError
from weft.extras import require
from weft.runtime.stop_signals import StopSignals
from weft.server.identity import is_loopback
from weft.server.logs import log_to
from weft.server.settings import read_jwt_settings
from weft.stores import open_store

if TYPE_CHECKING:
    from weft.server.api import Api

DRAIN_SECONDS = 10
BACKLOG = 2_048
SWITCH_SECONDS = 0.001
"""How long the thread of the store may wait for the interpreter lock. It needs the lock twice for every commit."""
OPEN_NOTICE = "open to every program on this machine, and to nobody else: there are no keys yet"
SERVER_STOPS = "stopping: running steps may finish, everything else continues when you serve again"
WORKER_STOPS = "stopping: running steps may finish"
CLOSED_NOTICE = "every request needs a key: weft keys"


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``weft serve`` and ``weft worker``."""

    files: Sequence[str]
    queues: Sequence[str] = ()
    url: str | None = None
    processes: int = 1


def serve(options: ServeOptions, *, host: str, port: int) -> None:
    """Host the apps and answer requests until a signal arrives."""
    require("server", "weft serve")
    app = _served_app(options)
    check_processes(options.processes, app.url)
    if not is_loopback(host):
        _run(_refuse_open(app.url, host))
    bound = _bind(host, port)
    log_to(sys.stderr)
    if options.processes == 1:
        _run(_serve(app, lambda: bound, say, lambda: say(SERVER_STOPS)))
        return
    host, port = bound.getsockname()[:2]
    if sys.platform == "linux":
        # Binding without SO_REUSEPORT has shown that no other server uses the port.
        bound.close()
        with _reserve(host, port):
            _supervise(_child_command("serve", options, host, port), options.processes, SERVER_STOPS)
    else:
        _supervise(_child_command("serve", options, host, port), options.processes, SERVER_STOPS, bound)


def work(options: ServeOptions) -> None:
    """Perform steps of these queues until a signal arrives."""
    app = _worker_app(options)
    check_processes(options.processes, app.url)
    log_to(sys.stderr)
    if options.processes == 1:
        _run(_work(app, options.queues, say, lambda: say(WORKER_STOPS)))
    else:
        _supervise(_child_command("worker", options), options.processes, WORKER_STOPS)


def run_child(command: ChildCommand, parent: ParentProcess) -> None:
    """Run the command in a child process, until the parent stops it."""
    options = ServeOptions(files=command.files, queues=command.queues, url=command.url)

    def ready(*lines: str) -> None:
        parent.stop_when_gone()
        parent.report(ChildReport(lines=lines))

    if command.command == "serve":
        app = _served_app(options)
        log_to(sys.stderr)
        app.router.services.telemetry.process = str(command.number)
        _run(_serve(app, lambda: _listener_of(command), ready, _say_nothing))
    else:
        app = _worker_app(options)
        log_to(sys.stderr)
        _run(_work(app, options.queues, ready, _say_nothing))


def _say_nothing() -> None:
    """Print nothing, because the parent prints that the command is stopping."""


def _served_app(options: ServeOptions) -> App:
    app = hosted_app(options.files, options.url, "weft serve")
    if options.queues:
        app.host_only(partial(QueueCatalogue, queues=list(options.queues)))
    return app


def _worker_app(options: ServeOptions) -> App:
    app = hosted_app(options.files, options.url, "weft worker")
    app.host_only(partial(WorkerCatalogue, queues=list(options.queues)))
    return app


def _child_command(
    name: Literal["serve", "worker"], options: ServeOptions, host: str = "", port: int = 0
) -> ChildCommand:
    return ChildCommand(
        command=name,
        files=options.files,
        queues=options.queues,
        url=options.url,
        number=0,
        path=sys.path,
        host=host,
        port=port,
    )


def _supervise(command: ChildCommand, count: int, stopping: str, listener: socket.socket | None = None) -> None:
    def ready(lines: Sequence[str]) -> None:
        first, *more = lines
        say(f"{first} in {count} processes", *more)

    asyncio.run(Supervisor(command, count, listener).run(ready=ready, stopping=lambda: say(stopping)))


def hosted_app(files: Sequence[str], url: str | None, command: str) -> App:
    """Return the app of one file, or one app that includes those of several files. Raises UsageError."""
    named = list(files) or [name for name in [project_settings().get("app")] if name]
    apps = [load_app(name, command).app for name in named]
    if len(apps) == 1:
        app = apps[0]
    else:
        urls = {one.url for one in apps}
        if url is None and len(urls) > 1:
            raise UsageError(f"The apps use {len(urls)} different stores.", hint="Name one store with --url.")
        app = App(url or (urls.pop() if urls else None))
        app.include(*apps)
    if url is not None:
        app.url = url
    return app


def _bind(host: str, port: int, *options: int, backlog: int = BACKLOG) -> socket.socket:
    """Listen on a port. This is done before anything is hosted, so that an unreachable server does no work."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    for option in (socket.SO_REUSEADDR, *options):
        bound.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        bound.bind((host.strip("[]"), port))
        if backlog:
            bound.listen(backlog)
    except OSError as error:
        bound.close()
        raise Unavailable(
            f"Port {port} of {host} cannot be opened: {os.strerror(error.errno or 0)}.", hint="Use another --port."
        ) from error
    bound.set_inheritable(False)
    return bound


def _reserve(host: str, port: int) -> socket.socket:
    """Reserve the port for the child processes. The socket does not listen, so it gets no connections."""
    return _bind(host, port, socket.SO_REUSEPORT, backlog=0)


def _listener_of(command: ChildCommand) -> socket.socket:
    """Open the listening socket of a child process.

    On Linux, each child has its own socket on the same port, and the kernel distributes connections among them. On
    other systems, all children share one socket.
    """
    if command.listener_fd >= 0:
        return socket.socket(fileno=command.listener_fd)
    return _bind(command.host, command.port, socket.SO_REUSEPORT)


def _run(main: Any) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    # Use uvloop if it is installed.
    factory: Any = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(main)
        except asyncio.CancelledError:
            raise hosting_cancelled() from None


async def _refuse_open(url: str, host: str) -> None:
    """Refuse a public address as long as the API requires no keys. Raises NotAllowed."""
    store = open_store(url)
    await store.open()
    try:
        if await store.access.is_open() and read_jwt_settings() is None:
            raise NotAllowed(
                f"Without API keys, the server can only listen on this machine, not on {host}.",
                hint="Create a key: weft keys create NAME --scope admin. Use a TLS proxy in front of the server.",
            )
    finally:
        await store.close()


async def _serve(
    app: App, listen: Callable[[], socket.socket], ready: Callable[..., None], stopping: Callable[[], None]
) -> None:
    from weft.server.buffered_http import allow_many_files
    from weft.server.listener import Listener

    allow_many_files()
    api = app.router
    async with app, _closing(api):
        bound = listen()
        address, port = bound.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        notice = OPEN_NOTICE if await api.services.is_open() else CLOSED_NOTICE
        api.services.hosting()
        ready(f"serving http://{shown}:{port} on {app.service.store.url}", notice)
        await Listener(api, drain_seconds=DRAIN_SECONDS).run(bound)
        stopping()


@contextlib.asynccontextmanager
async def _closing(api: Api) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await api.services.close()


async def _work(app: App, queues: Sequence[str], ready: Callable[..., None], stopping: Callable[[], None]) -> None:
    stop = asyncio.Event()
    StopSignals((signal.SIGTERM, signal.SIGINT), lambda _: stop.set()).open()
    async with app:
        ready(f"performing steps of {', '.join(queues)} on {app.service.store.url}")
        await stop.wait()
        stopping()
