"""One connection to a Redis server, over the parser of hiredis.

It never sends a request twice and never reconnects: whoever writes a WAL must know which requests may have been lost. A
request that is not answered in time ends the connection, because the answers after it would be taken for others.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import Any, Final, TypeAlias, cast

import hiredis

from weft.stores.hot.address import RedisAddress

Word: TypeAlias = str | int | bytes
Reply: TypeAlias = Any
"""bytes, int, None, a list of these, or a ``ServerRefusal`` inside a list."""

_INCOMPLETE: Final = object()


class ConnectionLost(Exception):
    """No answer came, and none will. The request may have been performed."""


class ServerRefusal(Exception):
    """The server answered with an error, such as "OOM command not allowed". The request was not performed."""

    @property
    def kind(self) -> str:
        """The first word, such as "OOM" or "MOVED"."""
        return str(self).partition(" ")[0]


class RedisConnection(asyncio.Protocol):
    """Requests and answers in order. Use ``connect`` to make one."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(protocolError=ConnectionLost, replyError=ServerRefusal, notEnoughData=_INCOMPLETE)
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._lost: str = ""

    async def request(self, *words: Word) -> Reply:
        """Send one command and return its answer.

        Raises:
            ServerRefusal: the server answered with an error.
            ConnectionLost: the connection is gone, or there was no answer in time, which ends the connection.
        """
        if self._transport is None or self._lost:
            raise ConnectionLost(self._lost or "the connection is closed")
        answer = self._loop.create_future()
        self._waiting.append(answer)
        self._transport.write(hiredis.pack_command(words))  # type: ignore[arg-type]  # declared as a tuple of one
        timer = self._loop.call_later(self._limit_s, self.abort, f"no answer within {self._limit_s:g} s")
        try:
            received = await answer
        finally:
            timer.cancel()
        if isinstance(received, ServerRefusal):
            raise received
        return received

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._lost

    def abort(self, reason: str = "the connection was closed") -> None:
        """Close at once. Whoever waits gets ConnectionLost."""
        if not self._lost:
            self._lost = reason
            if self._transport is not None:
                self._transport.abort()
        while self._waiting:
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(ConnectionLost(self._lost))

    # --- called by the event loop -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # that of uvloop is one, but does not say so

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not _INCOMPLETE:
                if not self._waiting:
                    self.abort("the server sent something that was not asked for")
                    return
                waiting = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_result(answer)
        except ConnectionLost as error:
            self.abort(f"the server does not speak the protocol of Redis: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort(f"the connection was lost: {exc}" if exc else "the server closed the connection")


async def connect(address: RedisAddress, limit_s: float) -> RedisConnection:
    """Connect and sign in. Raises ConnectionLost, or ServerRefusal if the server does not let us in."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limit_s):
            connection = await _open_connection(loop, address, limit_s)
    except TimeoutError:
        raise ConnectionLost(f"no connection within {limit_s:g} s") from None
    except OSError as error:
        raise ConnectionLost(str(error)) from error
    try:
        if address.password:
            await connection.request("AUTH", *([address.user] if address.user else []), address.password)
        if address.database:
            await connection.request("SELECT", address.database)
    except BaseException:
        connection.abort()
        raise
    return connection


async def _open_connection(loop: asyncio.AbstractEventLoop, address: RedisAddress, limit_s: float) -> RedisConnection:
    if address.path:
        _, connection = await loop.create_unix_connection(lambda: RedisConnection(limit_s), address.path)
        return connection
    transport, connection = await loop.create_connection(
        lambda: RedisConnection(limit_s), address.host, address.port, ssl=address.ssl_context()
    )
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection
