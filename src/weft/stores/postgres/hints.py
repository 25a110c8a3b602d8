"""Hints, with which hosts wake each other through LISTEN and NOTIFY. A lost hint only costs time: hosts also poll.

A hint is sent after its commit, in another session. A NOTIFY inside the transaction would take a lock that serializes
all such commits, including their flush to disk.

With Redis, hints are published there instead, and arrive without being asked for. A process without Redis still sends
NOTIFY, so all hosts hear that, too.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.errors import StoreError
from weft.stores.postgres.connection import Connection
from weft.stores.postgres.pool import fetch
from weft.stores.postgres.session import Session

if TYPE_CHECKING:  # only with Redis
    from weft.stores.redis.hints import RedisHints

log = logging.getLogger("weft")

CHANNEL = "weft"
SILENCE_SECONDS_MAX = 1.0
"""After this long without a hint, assume that something has changed."""


class Hints:
    """Sends hints to other processes and receives theirs."""

    def __init__(self, redis: RedisHints | None = None, heard: Callable[[], None] | None = None) -> None:
        """Hints arrive over ``redis`` only if ``heard`` is given, which is then called for each."""
        self._redis = redis
        self._heard = heard
        self._sender_id = secrets.token_hex(8)
        self._connection: Connection | None = None
        self._sending: asyncio.Task[None] | None = None
        self._again = False
        self._received = True
        self._reported_at = 0.0
        self.on_asked: Callable[[str], None] = lambda _: None
        """Called when another process asks the owner of a run to drain it."""

    def bind(self, connection: Connection) -> None:
        """Use this connection, whose sessions are opened with ``listen``."""
        self._connection = connection

    def start(self) -> None:
        """Listen to Redis, if there is one and somebody wants to hear."""
        if self._redis is not None and self._heard is not None:
            self._redis.listen(self._on_hint, self._on_ask)

    async def listen(self, session: Session) -> None:
        """Receive hints in a new session. Hints may have been missed before, so this counts as one."""
        await without_flush(session)
        await session.add_listener(CHANNEL, self._on_notify)
        self._received = True

    def _on_notify(self, _session: object, _pid: int, _channel: str, sender: str) -> None:
        if sender != self._sender_id:
            self._received = True

    def _on_hint(self) -> None:
        assert self._heard is not None
        self._received = True
        self._heard()

    def _on_ask(self, uid: str) -> None:
        self.on_asked(uid)

    async def take_hint(self) -> bool:
        """Return whether another process has sent a hint since the last call, or may have. Raises Unavailable."""
        if (
            not self._received
            and time.monotonic() - self._reported_at < SILENCE_SECONDS_MAX
            and not await self._is_hint_pending()
        ):
            return False
        self._received = False
        self._reported_at = time.monotonic()
        return True

    async def _is_hint_pending(self) -> bool:
        """Return whether there is a hint that has not been delivered, or may be."""
        if self._redis is not None:
            return not self._redis.hears
        assert self._connection is not None
        # A session delivers notifications together with the answer to a query.
        await fetch(self._connection, "SELECT 1")
        return self._received

    def send(self) -> None:
        """Send a hint soon. Several calls may become one hint."""
        if self._redis is not None:
            self._redis.send()
            return
        self._again = True
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_hints())

    def ask_to_drain(self, uid: str) -> None:
        """Ask the owner of a run to drain it. Only hosts with Redis have anything to drain."""
        if self._redis is not None:
            self._redis.ask_to_drain(uid)

    async def _send_hints(self) -> None:
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
        if self._redis is not None:
            await self._redis.close()
        while self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)


async def without_flush(session: Session) -> None:
    """Let commits of the session return before they are flushed to disk, because hints and heartbeats may be lost."""
    await session.execute("SET synchronous_commit = off")
