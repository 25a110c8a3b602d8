"""A proxy that removes a prefix from the paths of requests and tells nobody. Sockets pass through it."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import re
import threading
from collections.abc import Callable, Iterator

ENDS_HEAD = b"\r\n\r\n"


@contextlib.contextmanager
def stripping_proxy(port: int, prefix: str) -> Iterator[int]:
    """Serve what another port serves below a prefix. Yields the port of the proxy."""
    ready: queue.Queue[tuple[int, Callable[[], None]]] = queue.Queue()
    thread = threading.Thread(target=lambda: asyncio.run(serve(port, prefix, ready)))
    thread.start()
    own_port, stop = ready.get(timeout=60)
    try:
        yield own_port
    finally:
        stop()
        thread.join(60)


async def serve(port: int, prefix: str, ready: queue.Queue[tuple[int, Callable[[], None]]]) -> None:
    stopped = asyncio.Event()
    server = await asyncio.start_server(lambda near, to: pass_on(near, to, port, prefix), "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    ready.put((server.sockets[0].getsockname()[1], lambda: loop.call_soon_threadsafe(stopped.set) and None))
    await stopped.wait()
    server.close()


async def pass_on(near: asyncio.StreamReader, to: asyncio.StreamWriter, port: int, prefix: str) -> None:
    """Pass one request on. Each connection has one request, so only its first head has to be read."""
    with contextlib.closing(to), contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
        head = await near.readuntil(ENDS_HEAD)
        far, onward = await asyncio.open_connection("127.0.0.1", port)
        head = head.replace(f" {prefix}/".encode(), b" /", 1)
        if b"upgrade: websocket" not in head.lower():
            head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"\r\nConnection: close", head)
        with contextlib.closing(onward):
            onward.write(head)
            await asyncio.gather(copy(near, onward), copy(far, to))


async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(65_536):
            target.write(piece)
            await target.drain()
    target.close()
