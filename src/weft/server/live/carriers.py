"""Sends batches to a client as server-sent events or over a WebSocket.

A client that does not read is waited for, without buffering, and disconnected after a while. A client that leaves is
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
"""How many messages from a client are ignored before it is disconnected."""


async def send_events(receive: Receive, send: Send, batches: Batches) -> None:
    """Send batches as server-sent events. A refusal is raised before the answer begins."""
    first = await anext(batches)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": _joined(first), "more_body": True})

    async def pump() -> None:
        async with contextlib.aclosing(batches):
            async for batch in batches:
                await _send_in_time(send({"type": "http.response.body", "body": _joined(batch), "more_body": True}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    await _until_gone(receive, pump)


async def send_messages(receive: Receive, send: Send, batches: Batches) -> None:
    """Accept a WebSocket and send batches over it. Messages from the client are ignored."""
    first = await anext(batches)
    await send({"type": "websocket.accept"})
    for frame in first:
        await send({"type": "websocket.send", "text": frame.text()})

    async def pump() -> None:
        async with contextlib.aclosing(batches):
            async for batch in batches:
                for frame in batch:
                    await _send_in_time(send({"type": "websocket.send", "text": frame.text()}))
        await send({"type": "websocket.close", "code": NORMAL, "reason": "end"})

    await _until_gone(receive, pump)


def _joined(batch: Sequence[LiveFrame]) -> bytes:
    return b"".join([frame.sse() for frame in batch]) or ALIVE


async def _send_in_time(sending: Awaitable[None]) -> None:
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
        # The client stopped reading.
        with contextlib.suppress(TimeoutError):
            pumping.result()


async def _gone(receive: Receive) -> None:
    for _ in range(IGNORED_MAX):
        if (await receive())["type"] in GONE:
            return
