"""An MCP server as a child process, over its stdin and stdout.

The package has a transport for this too. Ours bounds how much a server may write, notices at once when it ends, and
ends its whole process group.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

log = logging.getLogger("weft.mcp")

LINE_BYTES_MAX = 8 * 1024 * 1024
UNASKED_MAX = 10_000
"""How many messages a server may send between two requests."""
GRACE_SECONDS = 2.0
STDERR_LINE_MAX = 2_000
Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@contextlib.asynccontextmanager
async def child_process(
    name: str, command: Sequence[str], env: Mapping[str, str], cwd: str | None, on_end: Callable[[str], None]
) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Start a server and yield the streams to it. ``on_end`` is told why it can no longer be used. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**get_default_environment(), **env},
        cwd=cwd,
        limit=LINE_BYTES_MAX,
        start_new_session=sys.platform != "win32",
    )
    to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    outgoing, from_client = anyio.create_memory_object_stream[SessionMessage](16)
    pipes = _Pipes(name, process, on_end)
    tasks = [
        asyncio.create_task(pipes.read(to_client)),
        asyncio.create_task(pipes.write(from_client)),
        asyncio.create_task(pipes.log_errors()),
    ]
    try:
        yield incoming, outgoing
    finally:
        pipes.closing = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _end(process)
        for stream in (to_client, incoming, outgoing, from_client):
            stream.close()


class _Pipes:
    """What goes in and out of a child process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, on_end: Callable[[str], None]) -> None:
        self._name = name
        self._process = process
        self._on_end = on_end
        self._unasked = 0
        self.closing = False

    async def read(self, to_client: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert self._process.stdout is not None
        why = "it ended"
        try:
            while line := await self._process.stdout.readline():
                self._unasked += 1
                if self._unasked > UNASKED_MAX:
                    why = f"it sent more than {UNASKED_MAX:,} messages that nobody asked for"
                    break
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError:
                    log.debug("the MCP server %s wrote a line that is no message", self._name)
                    continue
                await to_client.send(message)
        except ValueError:
            why = f"it wrote a line of more than {LINE_BYTES_MAX:,} bytes"
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            why = "its pipe broke"
        if not self.closing:
            self._on_end(why)
        to_client.close()

    async def write(self, from_client: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert self._process.stdin is not None
        try:
            async for message in from_client:
                self._unasked = 0
                raw = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(raw.encode() + b"\n")
                await self._process.stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            if not self.closing:
                self._on_end("it no longer reads")

    async def log_errors(self) -> None:
        """Log what the server writes to stderr, so that it cannot fill the pipe."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(STDERR_LINE_MAX):
            text = chunk.decode("utf-8", "replace").rstrip()
            if text:
                log.info("%s: %s", self._name, text)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a child and its children: stdin is closed, and whoever is still there is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        log.debug("an MCP server did not end by itself")
    _kill_group(process)
    await process.wait()


def _kill_group(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
