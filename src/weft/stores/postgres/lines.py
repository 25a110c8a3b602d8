"""Lines to the database: connections that are made when they are needed and replaced when they break.

What is asked on a line runs in one session, one question at a time. Whatever ends otherwise than with an answer closes
the line: what the server made of it is unknown, and the next question gets a new session. Made for one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from weft.errors import BadValue, Unavailable
from weft.stores.postgres.connection import LEASE_MS, Address, Connection, Record, connect, session_limits, speaking_of

T = TypeVar("T")
Question = Callable[[Connection], Awaitable[T]]
Opened = Callable[[Connection], Awaitable[None]]


class Asked(Protocol):
    """Where questions can be put: a line, or several."""

    async def ask(self, question: Question[T]) -> T:
        """The answer. Raises BadValue: the server names a value as the reason, and nothing was written.

        Raises Unavailable, Full, Corrupt; after any of them it is unknown what was written.
        """
        ...


async def fetch(where: Asked, text: str, *values: Any) -> list[Record]:
    """All rows."""
    return await where.ask(lambda connection: connection.fetch(text, *values))


async def fetch_row(where: Asked, text: str, *values: Any) -> Record | None:
    """The first row."""
    return await where.ask(lambda connection: connection.fetchrow(text, *values))


async def fetch_value(where: Asked, text: str, *values: Any) -> Any:
    """The first value of the first row."""
    return await where.ask(lambda connection: connection.fetchval(text, *values))


class Line:
    """One session at a time, for one asker at a time."""

    def __init__(self, address: Address, *, opened: Opened | None = None) -> None:
        self._address = address
        self._opened = opened
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._limits_ms = LEASE_MS
        self.lease_ms = LEASE_MS
        """Time limits of the session are below this."""
        self.closed = False

    async def ask(self, question: Question[T]) -> T:
        """See :class:`Asked`."""
        async with self._lock:
            connection = self._connection
            if connection is None or connection.is_closed():
                connection = await self._open()
            try:
                with speaking_of(self._address):
                    if self._limits_ms != self.lease_ms:
                        await self._set_limits(connection)
                    return await question(connection)
            except BadValue:
                raise
            except BaseException:
                # Whatever it was, nobody knows what has become of the session.
                self._connection = None
                connection.terminate()
                raise

    async def adopt(self, connection: Connection) -> None:
        """Use a session that is open already."""
        self._connection = connection
        if self._opened is not None:
            with speaking_of(self._address):
                await self._opened(connection)

    async def close(self) -> None:
        self.closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await hang_up(connection)

    async def _open(self) -> Connection:
        if self.closed:
            raise Unavailable(f"The store {self._address.shown} was closed.")
        self._limits_ms = LEASE_MS
        connection = await connect(self._address)
        if self._opened is not None:
            try:
                with speaking_of(self._address):
                    await self._opened(connection)
            except BaseException:
                connection.terminate()
                raise
        self._connection = connection
        return connection

    async def _set_limits(self, connection: Connection) -> None:
        for name, value in session_limits(self.lease_ms).items():
            await connection.execute("SELECT set_config($1, $2, false)", name, value)
        self._limits_ms = self.lease_ms


class Lines:
    """A few lines; a question takes one that is free."""

    def __init__(self, address: Address, count: int) -> None:
        self._all = [Line(address) for _ in range(count)]
        # The one used last comes first, so that no more are opened than are needed.
        self._free = list(self._all)
        self._room = asyncio.Semaphore(count)

    async def ask(self, question: Question[T]) -> T:
        """See :class:`Asked`."""
        async with self._room:
            line = self._free.pop()
            try:
                return await line.ask(question)
            finally:
                self._free.append(line)

    def limit(self, lease_ms: int) -> None:
        """Keep the time limits of all sessions below this lease."""
        for line in self._all:
            line.lease_ms = lease_ms

    async def adopt(self, connection: Connection) -> None:
        await self._free[-1].adopt(connection)

    async def close(self) -> None:
        for line in self._all:
            await line.close()


async def hang_up(connection: Connection) -> None:
    """End a session in order, unless the server no longer listens."""
    try:
        await connection.close(timeout=1)
    except Exception:  # noqa: BLE001 - it is to be gone, one way or the other
        connection.terminate()
