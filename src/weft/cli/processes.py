"""Run one command in several processes: the parent starts them, restarts those that die, and stops them all.

The first process is started alone. If it cannot start, the parent ends with its error; otherwise the others follow. A
process that dies later is restarted, the first time at once and then with growing pauses. Each process has a socket to
the parent, on which it reports that it is ready or why it cannot start. It stops when the parent has ended.

SIGTERM or SIGINT stops all processes cleanly; a second signal kills them. Each process has its own process group, so
that Ctrl-C reaches only the parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from weft.errors import Unavailable, UsageError, WeftError

log = logging.getLogger("weft.processes")

PROCESSES_MAX = 64
PAUSE_SECONDS_FIRST = 0.5
PAUSE_SECONDS_MAX = 30.0
STABLE_SECONDS = 60.0
"""A process that ran for this long is restarted without a pause."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)
GO_ON = b"\n"


class ChildCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a child process runs. It gets this as its only argument."""

    command: Literal["serve", "worker", "develop"]
    """``develop`` imports the apps, reports, and serves them when it is told to."""
    files: Sequence[str]
    queues: Sequence[str]
    url: str | None
    number: int
    path: Sequence[str]
    """The module search path of the parent."""
    host: str = ""
    port: int = 0
    parent_fd: int = -1
    listener_fd: int = -1
    """A listening socket that all processes share. -1 means that each process opens its own on the port."""


class ChildReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a child to its parent: lines to print when it is ready, or why it could not start."""

    lines: Sequence[str] = ()
    code: str = ""
    message: str = ""
    hint: str = ""
    misused: bool = False

    def error(self) -> WeftError:
        """Return the error that kept the child from starting."""
        kind = UsageError if self.misused else Unavailable
        return kind(self.message, hint=self.hint, code=self.code)


class DevError(msgspec.Struct, frozen=True):
    """What the parent tells a server under development: why the code that was saved last is not running."""

    message: str


def check_processes(count: int, url: str) -> None:
    """Refuse a number of processes that cannot work. Raises UsageError."""
    if count > PROCESSES_MAX:
        raise UsageError(
            f"{count} processes are too many; the limit is {PROCESSES_MAX}.", hint="Use one process per core."
        )
    if count > 1 and url.startswith("memory:"):
        raise UsageError(
            f"{url} exists only in one process, so {count} processes cannot share it.",
            hint="Use a store that they can share: --url sqlite:///weft.db, or Postgres.",
        )
    if count > 1 and sys.platform == "win32":
        raise UsageError("--processes is not supported on Windows.", hint="Use one process.")


# --- the parent ---------------------------------------------------------------------------------------------------


class ChildProcess:
    """One process of the command, and its socket to the parent."""

    def __init__(self, process: asyncio.subprocess.Process, number: int, channel: socket.socket) -> None:
        self.process = process
        self.number = number
        self._channel = channel

    @classmethod
    async def start(cls, command: ChildCommand, listener: socket.socket | None) -> ChildProcess:
        """Start a process. It inherits one end of the channel and, if it is shared, the listening socket."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        fds = [theirs.fileno(), *([listener.fileno()] if listener is not None else [])]
        sent = msgspec.structs.replace(command, parent_fd=fds[0], listener_fd=fds[-1] if listener is not None else -1)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "weft.cli.child",
                msgspec.json.encode(sent).decode(),
                pass_fds=fds,
                process_group=0,
            )
        return cls(process, command.number, ours)

    async def report(self) -> ChildReport | None:
        """Wait until the process is ready or cannot start. Returns None if it ended without a report."""
        raw = b""
        while not raw.endswith(b"\n"):
            part = await asyncio.get_running_loop().sock_recv(self._channel, 65_536)
            if not part:
                return None
            raw += part
        return msgspec.json.decode(raw, type=ChildReport)

    async def send(self, told: DevError) -> None:
        """Tell the process something."""
        await self._write(msgspec.json.encode(told) + b"\n")

    async def go_on(self) -> None:
        """Let a process that waits for it go on."""
        await self._write(GO_ON)

    async def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._channel, data)

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def wait(self) -> str:
        """Wait until the process has ended. Returns its exit code or the signal that ended it, as text."""
        code = await self.process.wait()
        self._channel.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class Supervisor:
    """Keeps several processes of one command running until a signal arrives."""

    def __init__(self, command: ChildCommand, count: int, listener: socket.socket | None = None) -> None:
        self._command = command
        self._count = count
        self._listener = listener
        self._children: dict[int, ChildProcess] = {}
        self._stopping = asyncio.Event()
        self._killed = False

    async def run(self, *, ready: Callable[[Sequence[str]], None], stopping: Callable[[], None]) -> None:
        """Run all processes until a signal arrives.

        ``ready`` is called with the lines of the first process when all are ready, ``stopping`` at the first signal.

        Raises:
            WeftError: a process cannot start.
            KeyboardInterrupt: a second signal killed the processes.
        """
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        keepers: list[asyncio.Task[None]] = []
        try:
            reports = [await self._start(1)]
            reports += await asyncio.gather(*(self._start(number) for number in range(2, self._count + 1)))
            if not self._stopping.is_set():
                ready(reports[0].lines)
            keepers += [loop.create_task(self._keep_running(number)) for number in range(1, self._count + 1)]
            await self._stopping.wait()
            stopping()
            await asyncio.gather(*keepers)
        finally:
            await self._stop(keepers)
        if self._killed:
            raise KeyboardInterrupt

    def _on_signal(self) -> None:
        """Stop all processes cleanly, or kill them at the second signal."""
        self._killed = self._stopping.is_set()
        self._stopping.set()
        if self._listener is not None:
            self._listener.close()
        for child in self._children.values():
            child.send_signal(signal.SIGKILL if self._killed else signal.SIGTERM)

    async def _stop(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        """Stop the processes that are still running, for example after a failed start."""
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        if not self._stopping.is_set():
            self._on_signal()
        for child in list(self._children.values()):
            await child.wait()

    async def _start(self, number: int) -> ChildReport:
        """Start a process and wait until it is ready. Raises WeftError."""
        if self._stopping.is_set():
            return ChildReport()
        command = msgspec.structs.replace(self._command, number=number)
        child = self._children[number] = await ChildProcess.start(command, self._listener)
        if self._stopping.is_set():
            child.send_signal(signal.SIGTERM)
        report = await child.report()
        if report is not None and not report.message:
            return report
        how = await child.wait()
        del self._children[number]
        if self._stopping.is_set():
            return ChildReport()
        raise (
            report.error()
            if report is not None
            else Unavailable(f"Process {number} ended with {how} while it started.")
        )

    async def _keep_running(self, number: int) -> None:
        """Restart a process whenever it ends, until all are stopped."""
        loop, pause = asyncio.get_running_loop(), 0.0
        while not self._stopping.is_set():
            started = loop.time()
            child = self._children.get(number)
            if child is not None:
                how = await child.wait()
                del self._children[number]
                if self._stopping.is_set():
                    return
                pause = 0.0 if loop.time() - started > STABLE_SECONDS else pause
                when = f"in {pause:g} s" if pause else "now"
                log.error(
                    "weft: process %d (pid %d) ended with %s; starting it again %s",
                    number,
                    child.process.pid,
                    how,
                    when,
                )
            await self._pause(pause)
            pause = min(PAUSE_SECONDS_MAX, max(PAUSE_SECONDS_FIRST, 2 * pause))
            try:
                await self._start(number)
            except WeftError as error:
                log.error(  # noqa: TRY400
                    "weft: process %d could not be started; trying again in %g s: %s", number, pause, error.message
                )

    async def _pause(self, seconds: float) -> None:
        if seconds:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()


# --- a child ------------------------------------------------------------------------------------------------------


class ParentProcess:
    """The connection of a child process to its parent."""

    def __init__(self, fd: int) -> None:
        self._channel = socket.socket(fileno=fd)
        self._channel.set_inheritable(False)
        self.has_reported = False
        """Whether this process has sent its report."""

    def report(self, report: ChildReport) -> None:
        """Report that this process is ready, or why it is not."""
        self.has_reported = True
        with contextlib.suppress(OSError):
            self._channel.sendall(msgspec.json.encode(report) + b"\n")

    def wait_to_go_on(self) -> bool:
        """Wait until the parent lets this process go on. Returns False if the parent has ended."""
        self.has_reported = False
        return self._channel.recv(len(GO_ON)) == GO_ON

    def listen(self, on_error: Callable[[DevError], None] | None = None) -> None:
        """Receive what the parent tells. Sends SIGTERM to this process when the parent has ended."""
        loop = asyncio.get_running_loop()
        received = bytearray()

        def read() -> None:
            part = self._channel.recv(65_536)
            if not part:
                loop.remove_reader(self._channel)
                os.kill(os.getpid(), signal.SIGTERM)
                return
            received.extend(part)
            while b"\n" in received and on_error is not None:
                line, _, rest = received.partition(b"\n")
                received[:] = rest
                on_error(msgspec.json.decode(bytes(line), type=DevError))

        loop.add_reader(self._channel, read)
