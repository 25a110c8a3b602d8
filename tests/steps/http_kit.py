"""A real server on loopback, and clients that may call it, or may not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from weft.core.ids import Millis
from weft.steps.http.addresses import parse_allowed
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpLimits, HttpRequest
from weft.steps.task import CURRENT_TASK, Task

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Speaker = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

HERE = "127.0.0.1"
ELSEWHERE = "127.0.0.2"
"""Loopback as well, and not among what the clients of these tests may call."""


class FixedClock:
    def now_ms(self) -> Millis:
        return Millis(1_800_000_000_000)

    def monotonic(self) -> float:
        return 0.0


def go(scenario: Coroutine[Any, Any, T]) -> T:
    """Run it; a test that hangs fails."""

    async def bounded() -> T:
        async with asyncio.timeout(200):
            return await scenario

    return asyncio.run(bounded())


@contextlib.asynccontextmanager
async def serving(handler: Handler, host: str = HERE) -> AsyncIterator[str]:
    """A server that answers everything with the handler; its address."""
    app = web.Application()
    app.router.add_route("*", r"/{anything:[\s\S]*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, host, 0)
    await site.start()
    try:
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def speaking(speaker: Speaker, host: str = HERE) -> AsyncIterator[str]:
    """A server that reads the head of a request and then says whatever the speaker says, HTTP or not."""
    speaking_to: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        present = asyncio.current_task()
        assert present is not None
        speaking_to.add(present)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await reader.readuntil(b"\r\n\r\n")
                await speaker(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, host, 0)
    try:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for present in speaking_to:
            present.cancel()
        await asyncio.gather(*speaking_to, return_exceptions=True)
        await asyncio.sleep(0)  # for the transports to close


def saying(raw: bytes) -> Speaker:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return speak


def answering(**answer: Any) -> Handler:
    async def answered(_: web.Request) -> web.StreamResponse:
        return web.Response(**answer)

    return answered


@contextlib.asynccontextmanager
async def calling(
    allow: str = HERE, *, names: dict[str, list[str]] | None = None, **limits: int
) -> AsyncIterator[HttpClient]:
    """A client that may call `allow`, and finds names in the table only."""

    async def lookup(host: str) -> list[str]:
        try:
            return (names or {})[host]
        except KeyError:
            raise OSError("no such name") from None

    client = HttpClient(parse_allowed(allow), limits=HttpLimits(**limits), lookup=lookup if names is not None else None)
    try:
        yield client
    finally:
        await client.close()


def get(url: str, **fields: Any) -> HttpRequest:
    return HttpRequest(**{"method": "GET", "timeout_ms": 5_000, **fields, "url": url})


def _spend(*_: object) -> None:
    """Count nothing."""


@contextlib.contextmanager
def task(key: str = "u1/price", attempt: int = 2) -> Any:
    token = CURRENT_TASK.set(partial(Task, key=key, attempt=attempt, run_id="order-1", step="price", spend=_spend))
    try:
        yield
    finally:
        CURRENT_TASK.reset(token)
