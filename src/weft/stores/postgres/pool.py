"""Connections to the database, and a pool of them.

A connection opens a session when it is first used and a new one when that breaks. It runs one function at a time. A
function that fails closes the session, because it is unknown what the server has done; only an error about a value
leaves the session open. Connections and pools belong to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from weft.errors import BadValue, Unavailable
from weft.stores.postgres.session import LEASE_MS, Address, Record, Session, connect, session_limits, translate_errors

T = TypeVar("T")
Work = Callable[[Session], Awaitable[T]]
OnOpen = Callable[[Session], Awaitable[None]]


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


class Connection:
    """A session that is opened on first use and replaced when it breaks; one caller at a time."""

    def __init__(self, address: Address, *, on_open: OnOpen | None = None) -> None:
        self._address = address
        self._on_open = on_open
        self._session: Session | None = None
        self._lock = asyncio.Lock()
        self._limits_ms = LEASE_MS
        self.lease_ms = LEASE_MS
        """The lease of the host. The time limits of the session are shorter than the lease."""
        self.closed = False

    async def run(self, work: Work[T]) -> T:
        """Call a function with the session, as ``Sessions.run`` describes."""
        async with self._lock:
            session = self._session
            if session is None or session.is_closed():
                session = await self._open()
            try:
                with translate_errors(self._address):
                    if self._limits_ms != self.lease_ms:
                        await self._set_limits(session)
                    return await work(session)
            except BadValue:
                raise
            except BaseException:
                # The state of the session is unknown.
                self._session = None
                session.terminate()
                raise

    async def adopt(self, session: Session) -> None:
        """Use a session that is already open."""
        self._session = session
        if self._on_open is not None:
            with translate_errors(self._address):
                await self._on_open(session)

    async def close(self) -> None:
        self.closed = True
        session, self._session = self._session, None
        if session is not None:
            await close_session(session)

    async def _open(self) -> Session:
        if self.closed:
            raise Unavailable(f"The store {self._address.safe_url} was closed.")
        self._limits_ms = LEASE_MS
        session = await connect(self._address)
        if self._on_open is not None:
            try:
                with translate_errors(self._address):
                    await self._on_open(session)
            except BaseException:
                session.terminate()
                raise
        self._session = session
        return session

    async def _set_limits(self, session: Session) -> None:
        for name, value in session_limits(self.lease_ms).items():
            await session.execute("SELECT set_config($1, $2, false)", name, value)
        self._limits_ms = self.lease_ms


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


async def close_session(session: Session) -> None:
    """Close a session. Drops it if the server does not answer."""
    try:
        await session.close(timeout=1)
    except Exception:  # noqa: BLE001 - whatever failed, the session must not stay open
        session.terminate()
