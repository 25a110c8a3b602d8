"""A connection to the database. It opens a session when it is first used and a new one when that breaks.

A connection runs one function at a time. A function that fails closes the session, because it is unknown what the
server has done; only an error about a value leaves the session open. Connections belong to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from weft.errors import BadValue, Unavailable, WeftError
from weft.stores.postgres.session import (
    LEASE_MS,
    Address,
    Session,
    connect,
    session_limits,
    translate_error,
    translate_errors,
)

T = TypeVar("T")
Work = Callable[[Session], Awaitable[T]]
OnOpen = Callable[[Session], Awaitable[None]]


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
        """Call a function with the session, as ``pool.Sessions.run`` describes."""
        async with self._lock:
            session = self._session
            if session is None or session.is_closed():
                session = await self._open_session()
            try:  # not ``with translate_errors``, which costs every statement seven calls
                if self._limits_ms != self.lease_ms:
                    await self._set_limits(session)
                return await work(session)
            except WeftError as error:
                self._drop_session(session, error)
                raise
            except Exception as error:
                failure = translate_error(error, self._address)
                self._drop_session(session, failure)
                raise failure from error
            except BaseException as error:
                self._drop_session(session, error)
                raise

    def _drop_session(self, session: Session, error: BaseException) -> None:
        """Drop the session after an error, because its state is unknown. An error about a value leaves it as it was."""
        if not isinstance(error, BadValue):
            self._session = None
            session.terminate()

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

    async def _open_session(self) -> Session:
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


async def close_session(session: Session) -> None:
    """Close a session. Drops it if the server does not answer."""
    try:
        await session.close(timeout=1)
    except Exception:  # noqa: BLE001 - whatever failed, the session must not stay open
        session.terminate()
