"""``weft mcp``: host apps in a child process of an MCP client, and answer it over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import TextIO

from weft.authoring.app import App
from weft.cli.login import login
from weft.cli.serve import hosted_app, run_loop
from weft.extras import require
from weft.runtime.stop_signals import StopSignals
from weft.server.logs import log_to


def serve_client(files: Sequence[str], url: str | None, *, decides: bool) -> None:
    """Answer one MCP client until it closes stdin, or until a signal arrives. Raises MissingExtra, UsageError."""
    require("mcp", "weft mcp")
    wire = _take_stdout()
    app = hosted_app(files, url, "weft mcp")
    log_to(sys.stderr)
    run_loop(_serve(app, wire, decides=decides))


def _take_stdout() -> TextIO:
    """Return stdout for the client alone. What the program prints, from its import to its exit, goes to stderr."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="")
    os.dup2(2, 1)
    return wire


async def _serve(app: App, wire: TextIO, *, decides: bool) -> None:
    from weft.server.mcp.stdio import serve_stdio

    stop = asyncio.Event()
    signals = StopSignals((signal.SIGTERM, signal.SIGINT), lambda _: stop.set())
    signals.open()
    api = app.router
    async with app:
        serving = asyncio.create_task(serve_stdio(api.services, login() or "local", wire, decides=decides))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await api.services.close()
    if serving.done():
        signals.close()
        serving.result()
        return
    # A thread is reading stdin. Nothing can wake it, and the interpreter would wait for it.
    sys.stderr.flush()
    os._exit(0)
