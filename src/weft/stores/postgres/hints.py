"""Hints, with which hosts wake each other through LISTEN and NOTIFY. A lost hint only costs time: hosts also poll.

A hint is sent after its commit, in another session. A NOTIFY inside the transaction would take a lock that serializes
all such commits, including their flush to disk.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from weft.errors import StoreError
from weft.stores.postgres.pool import Connection, fetch
from weft.stores.postgres.session import Session

log = logging.getLogger("weft")

CHANNEL = "weft"
SILENCE_SECONDS_MAX = 1.0
"""After this long without a hint, assume that something has changed."""


class Hints:
    """Sends hints to other processes and receives theirs."""

    def __init__(self) -> None:
        self._sender_id = secrets.token_hex(8)
        self._connection: Connection | None = None
        self._sending: asyncio.Task[None] | None = None
        self._again = False
        self._received = True
        self._reported_at = 0.0

    def bind(self, connection: Connection) -> None:
        """Use this connection, whose sessions are opened with ``listen``."""
        self._connection = connection

    async def listen(self, session: Session) -> None:
        """Receive hints in a new session. Hints may have been missed before, so this counts as one."""
        await without_flush(session)
        await session.add_listener(CHANNEL, self._on_notify)
        self._received = True

    def _on_notify(self, _session: object, _pid: int, _channel: str, sender: str) -> None:
        if sender != self._sender_id:
            self._received = True

    async def take_hint(self) -> bool:
        """Return whether another process has sent a hint since the last call, or may have. Raises Unavailable."""
        assert self._connection is not None
        if not self._received and time.monotonic() - self._reported_at < SILENCE_SECONDS_MAX:
            # A session delivers notifications together with the answer to a query.
            await fetch(self._connection, "SELECT 1")
            if not self._received:
                return False
        self._received = False
        self._reported_at = time.monotonic()
        return True

    def send(self) -> None:
        """Send a hint soon. Several calls may become one hint."""
        self._again = True
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        assert self._connection is not None
        try:
            while self._again:
                self._again = False
                await fetch(self._connection, "SELECT pg_notify($1, $2)", CHANNEL, self._sender_id)
        except StoreError as error:
            log.debug("weft: could not send a hint to other hosts (%s)", error)
        finally:
            self._sending = None

    async def close(self) -> None:
        """Wait until pending hints are sent."""
        while self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)


async def without_flush(session: Session) -> None:
    """Let commits of the session return before they are flushed to disk, because hints and heartbeats may be lost."""
    await session.execute("SET synchronous_commit = off")
