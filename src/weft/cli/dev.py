"""``weft dev``: serve an app, and serve its new code as soon as a file is saved.

The server runs in a process of its own. After a save, another process imports the new code first. Only if that works,
the server is stopped and that process serves in its place; runs continue, as after any restart. Otherwise the old code
keeps running, and the web UI shows the error. The port stays open in between, so that browsers wait instead of failing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from pathlib import Path
from typing import Final

from weft.cli.app_file import file_of_app
from weft.cli.file_watch import FileWatch
from weft.cli.messages import say
from weft.cli.processes import ChildCommand, ChildProcess, ChildReport, DevError
from weft.cli.serve import SERVER_STOPS, ServeOptions, bind_socket, child_command
from weft.cli.store_access import refuse_server
from weft.errors import UsageError, WeftError
from weft.extras import require
from weft.settings import project_text, store_url

LOOK_SECONDS: Final = 0.3
PATIENCE_SECONDS: Final = 3.0
"""How long the old server may finish its running steps before it is stopped at once."""
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def develop(options: ServeOptions, *, port: int) -> None:
    """Serve apps and reload them on save, until a signal arrives. Raises UsageError, WeftError."""
    require("server", "weft dev")
    refuse_server(options.url or store_url(), "weft dev", "it hosts runs here, beside their store")
    if sys.platform == "win32":
        raise UsageError("weft dev is not supported on Windows.", hint="Use weft serve.")
    named = list(options.files) or [name for name in [project_text("app")] if name]
    folders = list(dict.fromkeys(file_of_app(name).parent for name in named)) or [Path.cwd()]
    with bind_socket("127.0.0.1", port) as bound:
        command = child_command("develop", options, *bound.getsockname()[:2])
        asyncio.run(_Developer(command, bound, FileWatch(folders)).run())


class _Developer:
    """Keeps one server running, with the newest code that can be imported."""

    def __init__(self, command: ChildCommand, bound: socket.socket, watch: FileWatch) -> None:
        self._command = command
        self._bound = bound
        self._watch = watch
        self._server: ChildProcess | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stopping.set)
        try:
            say(*await self._serve(await self._import()))
            say(f"watching {', '.join(str(folder) for folder in self._watch.folders)}: save a file to reload it")
            while saved := await self._next_save():
                await self._reload(saved)
            say(SERVER_STOPS)
        finally:
            await self._stop()

    async def _import(self) -> ChildProcess:
        """Import the newest code in a new process. Raises WeftError."""
        imported = await ChildProcess.start(self._command, self._bound)
        await _reported(imported)
        return imported

    async def _serve(self, imported: ChildProcess) -> list[str]:
        """Serve what a process has imported. Returns what it says when it is ready. Raises WeftError."""
        self._server = imported
        await imported.go_on()
        try:
            return list((await _reported(imported)).lines)
        except WeftError:
            self._server = None
            raise

    async def _next_save(self) -> list[Path]:
        """Wait until files were saved and nothing more changes. Returns nothing when the command is stopped."""
        saved: list[Path] = []
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._stopping.wait()
                    return []
            changed = await asyncio.to_thread(self._watch.changed)
            if saved and not changed:
                return saved
            saved += changed
        return []

    async def _reload(self, saved: list[Path]) -> None:
        name = saved[0].name if len(saved) == 1 else f"{len(saved)} files"
        try:
            imported = await self._import()
        except WeftError as error:
            kept = "the old code keeps running" if self._server is not None else "nothing is served"
            say(f"{name} was saved; {kept}: {error.message}", error.hint)
            if self._server is not None:
                await self._server.send(DevError(message=error.message))
            return
        await self._stop()
        try:
            await self._serve(imported)
        except WeftError as failed:
            say(f"{name} was saved, but the server cannot start: {failed.message}", failed.hint)
        else:
            say(f"{name} was saved: serving the new code")

    async def _stop(self) -> None:
        """Stop the server. Steps that take too long are performed again by the next one."""
        server, self._server = self._server, None
        if server is None:
            return
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            server.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await server.wait()
                    return
        await server.wait()


async def _reported(child: ChildProcess) -> ChildReport:
    """Return what a process reports next. Raises WeftError if it cannot go on, when it has ended."""
    report = await child.report()
    if report is not None and not report.message:
        return report
    how = await child.wait()
    raise report.error() if report is not None else UsageError(f"The process that serves the app ended with {how}.")
