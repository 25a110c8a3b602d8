"""Send batches to a client as server-sent events or over a WebSocket.

Nothing is buffered for a client that does not read; after a while it is disconnected. A closed connection is noticed at
once. The caller is identified again every few seconds, and the connection ends when it may no longer listen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from weft.server.asgi import Receive, Send
from weft.server.live.frames import Batches, LiveFrame

log = logging.getLogger("weft.api")

MayListen = Callable[[], Awaitable[bool]]
"""Returns whether the caller of an open connection may still listen."""
SEND_SECONDS_MAX = 60.0
IDENTIFY_SECONDS = 5.0
"""How often the caller of an open connection is identified again."""
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
POLICY_VIOLATION = 1008
IGNORED_MAX = 1_000
"""How many messages from a client are ignored before it is disconnected."""


async def send_events(receive: Receive, send: Send, batches: Batches, may_listen: MayListen) -> None:
    """Send batches as server-sent events. Raises a refusal before the response begins."""
    first = await anext(batches)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": _join(first), "more_body": True})
    end = {"type": "http.response.body", "body": b"", "more_body": False}

    async def pump() -> None:
        async with contextlib.aclosing(batches):
            async for batch in batches:
                await _send_in_time(send({"type": "http.response.body", "body": _join(batch), "more_body": True}))
        await send(end)

    try:
        is_over = await _pump_while_allowed(receive, pump, may_listen)
    except Exception:
        # The response has begun, so it can only be ended. The client asks again for what is missing.
        log.exception("a live stream failed after its first bytes")
        is_over = False
    if not is_over:
        with contextlib.suppress(TimeoutError, OSError):
            await _send_in_time(send(end))


async def send_messages(receive: Receive, send: Send, batches: Batches, may_listen: MayListen) -> None:
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

    if not await _pump_while_allowed(receive, pump, may_listen):
        reason = "the caller may no longer listen"
        with contextlib.suppress(TimeoutError):
            await _send_in_time(send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason}))


def _join(batch: Sequence[LiveFrame]) -> bytes:
    return b"".join([frame.sse() for frame in batch]) or KEEP_ALIVE


async def _send_in_time(sending: Awaitable[None]) -> None:
    async with asyncio.timeout(SEND_SECONDS_MAX):
        await sending


async def _pump_while_allowed(receive: Receive, pump: Callable[[], Awaitable[None]], may_listen: MayListen) -> bool:
    """Send until the end or until the client is gone. Returns False if it stopped because the caller is refused."""
    pumping = asyncio.ensure_future(pump())
    disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
    refusal = asyncio.ensure_future(_wait_for_refusal(may_listen))
    tasks = (pumping, disconnect, refusal)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if not pumping.cancelled():
        # A timeout means that the client stopped reading.
        with contextlib.suppress(TimeoutError):
            pumping.result()
        return True
    return refusal.cancelled() or not disconnect.cancelled()


async def _wait_for_refusal(may_listen: MayListen) -> None:
    while True:
        await asyncio.sleep(IDENTIFY_SECONDS)
        if not await may_listen():
            return


async def _wait_for_disconnect(receive: Receive) -> None:
    for _ in range(IGNORED_MAX):
        if (await receive())["type"] in DISCONNECT_TYPES:
            return
