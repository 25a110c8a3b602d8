"""``weft serve`` and ``weft worker``.

The first hosts the engine, the API and the web UI; the second performs steps of runs that other processes host. Both
run in one process, or in several that share a store. Without API keys, the server binds only to loopback addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
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
from weft.cli.processes import ChildCommand, ChildReport, DevError, ParentProcess, Supervisor, check_processes
from weft.cli.store_access import refuse_server
from weft.errors import NotAllowed, Unavailable, UsageError
from weft.extras import require
from weft.runtime.stop_signals import StopSignals
from weft.server.identity import is_loopback
from weft.server.logs import log_to
from weft.server.settings import public_url, read_jwt_settings
from weft.settings import project_text
from weft.stores import open_store

if TYPE_CHECKING:
    from weft.server.api import Api

DRAIN_SECONDS = 10
BACKLOG = 2_048
SWITCH_SECONDS = 0.0001
"""How long a thread waits for the interpreter lock while another one computes.

Every statement of SQLite and every turn of the loop gives the lock away and waits for it again, so an answer takes
many times this while a document is compiled in a thread.
"""
OPEN_NOTICE = "open to every program on this machine, and to nobody else: there are no keys yet"
SERVER_STOPS = "stopping: running steps may finish, everything else continues when you serve again"
WORKER_STOPS = "stopping: running steps may finish"
NOT_BUILT = "the web UI is not built: make ui"
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
        run_loop(_refuse_open(app.url, host))
    bound = bind_socket(host, port)
    log_to(sys.stderr)
    if options.processes == 1:
        run_loop(_serve(app, lambda: bound, say, lambda: say(SERVER_STOPS)))
        return
    host, port = bound.getsockname()[:2]
    if sys.platform == "linux":
        # Binding without SO_REUSEPORT has shown that no other server uses the port.
        bound.close()
        with _reserve(host, port):
            _supervise(child_command("serve", options, host, port), options.processes, SERVER_STOPS)
    else:
        _supervise(child_command("serve", options, host, port), options.processes, SERVER_STOPS, bound)


def work(options: ServeOptions) -> None:
    """Perform steps of these queues until a signal arrives."""
    app = _worker_app(options)
    check_processes(options.processes, app.url)
    log_to(sys.stderr)
    if options.processes == 1:
        run_loop(_work(app, options.queues, say, lambda: say(WORKER_STOPS)))
    else:
        _supervise(child_command("worker", options), options.processes, WORKER_STOPS)


def run_child(command: ChildCommand, parent: ParentProcess) -> None:
    """Run the command in a child process, until the parent stops it."""
    options = ServeOptions(files=command.files, queues=command.queues, url=command.url)
    match command.command:
        case "serve" | "develop":
            app = _served_app(options)
            if command.command == "develop":
                parent.report(ChildReport())
                if not parent.wait_to_go_on():
                    return
            services = app.router.services
            log_to(sys.stderr)
            services.telemetry.process = str(command.number)
            ready = _reporter(parent, lambda error: services.tell_dev_error(error.message))
            run_loop(_serve(app, lambda: _listener_of(command), ready, _say_nothing))
        case "worker":
            app = _worker_app(options)
            log_to(sys.stderr)
            run_loop(_work(app, options.queues, _reporter(parent), _say_nothing))


def _reporter(parent: ParentProcess, on_error: Callable[[DevError], None] | None = None) -> Callable[..., None]:
    """Return a function that tells the parent that this process is ready, and listens to it from then on."""

    def ready(*lines: str) -> None:
        parent.listen(on_error)
        parent.report(ChildReport(lines=lines))

    return ready


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


def child_command(
    name: Literal["serve", "worker", "develop"], options: ServeOptions, host: str = "", port: int = 0
) -> ChildCommand:
    """Return the command for a child process that serves or works with these options."""
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
    named = list(files) or [name for name in [project_text("app")] if name]
    apps = [load_app(name, command).app for name in named]
    if len(apps) == 1:
        app = apps[0]
    else:
        urls = {one.url for one in apps}
        if url is None and len(urls) > 1:
            raise UsageError(f"The apps use {len(urls)} different stores.", hint="Name one store with --url.")
        redis, hot = _common_redis(apps)
        app = App(url or (urls.pop() if urls else None), redis=redis, hot=hot)
        app.include(*apps)
    if url is not None:
        app.url = url
    refuse_server(app.url, command, "it hosts runs here, beside their store")
    return app


def _common_redis(apps: Sequence[App]) -> tuple[str | None, str | None]:
    """Return the Redis server and the policy of the hot path that the apps name. Raises UsageError if they differ."""
    named = {one.redis_names for one in apps} - {(None, None)}
    if len(named) > 1:
        raise UsageError(
            "The apps name different Redis servers, or different policies of the hot path.",
            hint="Name them once: WEFT_REDIS and WEFT_HOT, or [tool.weft] redis and hot.",
        )
    return named.pop() if named else (None, None)


def bind_socket(host: str, port: int, *options: int, backlog: int = BACKLOG) -> socket.socket:
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
    return bind_socket(host, port, socket.SO_REUSEPORT, backlog=0)


def _listener_of(command: ChildCommand) -> socket.socket:
    """Open the listening socket of a child process.

    On Linux, each child has its own socket on the same port, and the kernel distributes connections among them. On
    other systems, all children share one socket.
    """
    if command.listener_fd >= 0:
        return socket.socket(fileno=command.listener_fd)
    return bind_socket(command.host, command.port, socket.SO_REUSEPORT)


def run_loop(main: Any) -> None:
    """Run a server on the fastest event loop that is installed."""
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
        address = shown_address(bound)
        notice = OPEN_NOTICE if await api.services.is_open() else CLOSED_NOTICE
        local = api.services.hosting().local
        if local is not None:
            await app.service.store.hosts.describe(local.host, {"address": public_url() or address})
        gc.freeze()  # what was imported stays, so later collections need not visit it
        ready(f"serving {address} on {app.service.store.url}", notice, _ui_notice(api, public_url() or address))
        await Listener(api, drain_seconds=DRAIN_SECONDS).run(bound)
        stopping()


def shown_address(bound: socket.socket) -> str:
    """Return the address of a listening socket as a URL."""
    address, port = bound.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def _ui_notice(api: Api, address: str) -> str:
    return f"the web UI is at {address}/" if api.services.web.index is not None else NOT_BUILT


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
