"""Send batches to a client as server-sent events or over a WebSocket.

Nothing is buffered for a client that does not read; after a while it is disconnected. A closed connection is noticed at
once.
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
KEEP_ALIVE = b":\n\n"
DISCONNECT_TYPES = ("http.disconnect", "websocket.disconnect")
GOING_AWAY = 1001
NORMAL = 1000
IGNORED_MAX = 1_000
"""How many messages from a client are ignored before it is disconnected."""


async def send_events(receive: Receive, send: Send, batches: Batches) -> None:
    """Send batches as server-sent events. Raises a refusal before the response begins."""
    first = await anext(batches)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": _join(first), "more_body": True})

    async def pump() -> None:
        async with contextlib.aclosing(batches):
            async for batch in batches:
                await _send_in_time(send({"type": "http.response.body", "body": _join(batch), "more_body": True}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    await _pump_until_disconnect(receive, pump)


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

    await _pump_until_disconnect(receive, pump)


def _join(batch: Sequence[LiveFrame]) -> bytes:
    return b"".join([frame.sse() for frame in batch]) or KEEP_ALIVE


async def _send_in_time(sending: Awaitable[None]) -> None:
    async with asyncio.timeout(SEND_SECONDS_MAX):
        await sending


async def _pump_until_disconnect(receive: Receive, pump: Callable[[], Awaitable[None]]) -> None:
    pumping = asyncio.ensure_future(pump())
    disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait((pumping, disconnect), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, disconnect):
            task.cancel()
        await asyncio.gather(pumping, disconnect, return_exceptions=True)
    if not pumping.cancelled():
        # A timeout means that the client stopped reading.
        with contextlib.suppress(TimeoutError):
            pumping.result()


async def _wait_for_disconnect(receive: Receive) -> None:
    for _ in range(IGNORED_MAX):
        if (await receive())["type"] in DISCONNECT_TYPES:
            return
