"""``weft ui``: open the web UI of a store in a browser.

If a server hosts the store, its own UI is opened. Otherwise this process serves the store on a free loopback port. It
hosts nothing: runs go on only in the processes that host them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import urllib.error
import urllib.request
import webbrowser
from functools import partial
from urllib.parse import quote

from weft.authoring.app import App
from weft.authoring.served_app import Served
from weft.cli.messages import say
from weft.cli.serve import bind_socket, run_loop, shown_address
from weft.cli.store_access import is_server, open_service, store_label, url_of
from weft.extras import require
from weft.ports.run_query import RunQuery
from weft.runtime.service import RunService
from weft.runtime.store_steps import StoreSteps
from weft.server.logs import log_to

PROBE_SECONDS = 2.0
YOUNG_MS = 10 * 60 * 1000
"""A run that was started within this time is what its user wants to see."""
DRAIN_SECONDS = 2
STOP = "Ctrl-C stops it. Runs go on in the processes that host them."


def show_ui(run: str | None, *, url: str | None, app: str | None, print_only: bool) -> None:
    """Open the web UI at a run, else at a run that is young, else at the list of runs."""
    require("server", "weft ui")
    run_loop(_show(run, url_of(url, app), print_only=print_only))


async def _show(run: str | None, url: str, *, print_only: bool) -> None:
    async with open_service(url) as service:
        path = await _first_address(service, run)
        if is_server(url):
            _open(f"{url.rstrip('/')}{path}", print_only=print_only)
            return
        server = await _find_server(service)
        if server:
            _open(f"{server}{path}", print_only=print_only)
            say(f"{server} serves {store_label(url)}")
            return
        await _serve(service, url, path, print_only=print_only)


async def _first_address(service: RunService, run: str | None) -> str:
    """Return the address of the first screen. Raises NotFound."""
    if run is not None:
        return f"/runs/{quote((await service.by_prefix(run)).id, safe='')}"
    newest = (await service.search(RunQuery(limit=1))).rows
    is_young = bool(newest) and service.clock.now_ms() - newest[0].created_at < YOUNG_MS
    return f"/runs/{quote(newest[0].id, safe='')}" if is_young else "/runs"


async def _find_server(service: RunService) -> str:
    """Return the address of a server that hosts this store and answers; empty if there is none."""
    for host in await service.store.hosts.list_all():
        address = str(host.about.get("address", "")).replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]")
        if address and not host.gone and await asyncio.to_thread(_answers, address):
            return address
    return ""


def _answers(address: str) -> bool:
    try:
        # The address is that of a server of this store; it is only asked whether it is there.
        with urllib.request.urlopen(f"{address}/healthz", timeout=PROBE_SECONDS) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, ValueError, urllib.error.URLError):
        return False


async def _serve(service: RunService, url: str, path: str, *, print_only: bool) -> None:
    from weft.server.api import Api
    from weft.server.listener import Listener

    log_to(sys.stderr)
    registered = App(url).registered
    service.steps = StoreSteps(registered, service.store, service.clock)
    api = Api(Served(registered), lambda: service, without_host=True)
    bound = bind_socket("127.0.0.1", 0)
    address = shown_address(bound)
    say(f"serving {store_label(url)} at {address}", STOP)
    # The browser asks at once, so it is opened when the server is about to listen: the socket queues its request.
    asyncio.get_running_loop().call_soon(partial(_open, f"{address}{path}", print_only=print_only))
    try:
        await Listener(api, drain_seconds=DRAIN_SECONDS).run(bound)
    finally:
        await api.services.close()


def _open(address: str, *, print_only: bool) -> None:
    """Open a browser and print the address, in case that it does not show."""
    if not print_only and _has_browser():
        webbrowser.open(address)
    print(address, flush=True)


def _has_browser() -> bool:
    """Return whether a browser can show something. On a machine without a display, one would fill the terminal."""
    if os.environ.get("BROWSER"):
        return True
    if sys.platform.startswith(("linux", "freebsd")):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True
