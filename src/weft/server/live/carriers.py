"""The two ways to a client that listens: server-sent events, and a WebSocket.

A client that does not read is waited for, for a while, with nothing piling up; then it is let go. One that leaves is
noticed at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from weft.server.asgi import Receive, Send
from weft.server.live.frames import Batches, LiveFrame

SEND_SECONDS_MAX = 60.0
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]
ALIVE = b":\n\n"
GONE = ("http.disconnect", "websocket.disconnect")
GOING_AWAY = 1001
NORMAL = 1000
IGNORED_MAX = 1_000
"""Messages from a client that only listens."""


async def send_events(receive: Receive, send: Send, batches: Batches) -> None:
    """Carry batches as server-sent events. What is refused is refused before the answer begins."""
    first = await anext(batches)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": _joined(first), "more_body": True})

    async def pump() -> None:
        async with contextlib.aclosing(batches):
            async for batch in batches:
                await _patiently(send({"type": "http.response.body", "body": _joined(batch), "more_body": True}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    await _until_gone(receive, pump)


async def send_messages(receive: Receive, send: Send, batches: Batches) -> None:
    """Carry batches over a WebSocket, which is accepted here; what the client says is ignored."""
    first = await anext(batches)
    await send({"type": "websocket.accept"})
    for frame in first:
        await send({"type": "websocket.send", "text": frame.text()})

    async def pump() -> None:
        async with contextlib.aclosing(batches):
            async for batch in batches:
                for frame in batch:
                    await _patiently(send({"type": "websocket.send", "text": frame.text()}))
        await send({"type": "websocket.close", "code": NORMAL, "reason": "end"})

    await _until_gone(receive, pump)


def _joined(batch: Sequence[LiveFrame]) -> bytes:
    return b"".join([frame.sse() for frame in batch]) or ALIVE


async def _patiently(sending: Awaitable[None]) -> None:
    async with asyncio.timeout(SEND_SECONDS_MAX):
        await sending


async def _until_gone(receive: Receive, pump: Callable[[], Awaitable[None]]) -> None:
    pumping = asyncio.ensure_future(pump())
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((pumping, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, leaving):
            task.cancel()
        await asyncio.gather(pumping, leaving, return_exceptions=True)
    if not pumping.cancelled():
        # A client that stopped reading has no more to hear of it.
        with contextlib.suppress(TimeoutError):
            pumping.result()


async def _gone(receive: Receive) -> None:
    for _ in range(IGNORED_MAX):
        if (await receive())["type"] in GONE:
            return
