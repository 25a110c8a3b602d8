"""The connection that writes a WAL: what it does not understand ends it, because later answers would be mistaken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.hot.kit import in_loop
from weft.stores import RedisUse, wal_server
from weft.stores.hot.address import redis_address
from weft.stores.hot.connection import ConnectionLost, RedisConnection, connect
from weft.stores.hot.redis_wal_server import RedisWalServer
from weft.stores.memory import MemoryStore


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[RedisConnection]:
    """A connection to a server that gives these answers, one for each time that it gets something."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.read(1_000)
            writer.write(answer)
            await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await connect(redis_address(f"redis://127.0.0.1:{port}"), 20.0)
    try:
        yield connection
    finally:
        connection.abort()
        server.close()
        await server.wait_closed()


@in_loop
async def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    async with answering(b"+OK\r\n+OK\r\n") as connection:
        assert await connection.request("PING") == b"OK"
        with pytest.raises(ConnectionLost, match="not asked for"):
            await connection.request("PING")


@in_loop
async def test_what_is_not_the_protocol_ends_the_connection() -> None:
    async with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as connection:
        with pytest.raises(ConnectionLost, match="does not speak the protocol of Redis"):
            await connection.request("PING")
        assert not connection.is_open


def test_a_wal_is_waited_for_half_a_lease() -> None:
    """A host that waits longer is taken for dead."""
    server = wal_server(MemoryStore(), RedisUse(url="redis://127.0.0.1:1", hot="event", lease_seconds=4.0))

    assert isinstance(server, RedisWalServer)
    assert server._limit_s == 2.0
