"""A pool of connections to the database, and queries over a pool or a single connection."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from weft.stores.postgres.connection import Connection, T, Work
from weft.stores.postgres.session import Address, Record, Session


class Sessions(Protocol):
    """Runs functions in sessions: one connection, or a pool of them."""

    async def run(self, work: Work[T]) -> T:
        """Call a function with a session and return its result.

        Raises:
            BadValue: the server refuses a value; nothing was written.
            Unavailable, Full, Corrupt: it is unknown what was written.
        """
        ...


async def fetch(sessions: Sessions, text: str, *values: Any) -> list[Record]:
    """Return all rows of a query."""
    return await sessions.run(lambda session: session.fetch(text, *values))


async def fetch_row(sessions: Sessions, text: str, *values: Any) -> Record | None:
    """Return the first row of a query."""
    return await sessions.run(lambda session: session.fetchrow(text, *values))


async def fetch_value(sessions: Sessions, text: str, *values: Any) -> Any:
    """Return the first value of the first row of a query."""
    return await sessions.run(lambda session: session.fetchval(text, *values))


class Pool:
    """A fixed number of connections."""

    def __init__(self, address: Address, count: int) -> None:
        self._all = [Connection(address) for _ in range(count)]
        # Used as a stack: the connection that was used last is used next, so that no more sessions open than needed.
        self._free = list(self._all)
        self._room = asyncio.Semaphore(count)

    async def run(self, work: Work[T]) -> T:
        """Call a function with a session of a free connection, as ``Sessions.run`` describes."""
        async with self._room:
            connection = self._free.pop()
            try:
                return await connection.run(work)
            finally:
                self._free.append(connection)

    def limit(self, lease_ms: int) -> None:
        """Keep the time limits of all sessions shorter than this lease."""
        for connection in self._all:
            connection.lease_ms = lease_ms

    async def adopt(self, session: Session) -> None:
        """Use a session that is already open."""
        await self._free[-1].adopt(session)

    async def close(self) -> None:
        for connection in self._all:
            await connection.close()
