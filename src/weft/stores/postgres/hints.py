"""Wake-ups between hosts: LISTEN and NOTIFY. Hints only: one that is lost costs a moment, and polling is the truth.

A hint is given after the commit that it speaks of, in a session of its own: inside, it would make all commits that give
one wait for each other, whole and with their flush to disk.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from weft.errors import StoreError
from weft.stores.postgres.connection import Connection
from weft.stores.postgres.lines import Line, fetch

log = logging.getLogger("weft")

CHANNEL = "weft"
SILENCE_SECONDS_MAX = 1.0
"""Without any hint, something may have changed after this long."""


class Hints:
    """Gives hints to other processes, and hears theirs."""

    def __init__(self) -> None:
        self._me = secrets.token_hex(8)
        self._line: Line | None = None
        self._giving: asyncio.Task[None] | None = None
        self._again = False
        self._heard = True
        self._changed_at = 0.0

    def bind(self, line: Line) -> None:
        """Use this line, which was made with ``listen``."""
        self._line = line

    async def listen(self, connection: Connection) -> None:
        """Hear hints in a session that was just opened. What was said before is not known, so something was."""
        await without_flush(connection)
        await connection.add_listener(CHANNEL, self._hear)
        self._heard = True

    def _hear(self, _connection: object, _pid: int, _channel: str, sender: str) -> None:
        if sender != self._me:
            self._heard = True

    async def heard(self) -> bool:
        """Whether another process gave a hint since the last call, or may have. Raises Unavailable."""
        assert self._line is not None
        if not self._heard and time.monotonic() - self._changed_at < SILENCE_SECONDS_MAX:
            # A session hands out what it has heard when it answers.
            await fetch(self._line, "SELECT 1")
            if not self._heard:
                return False
        self._heard = False
        self._changed_at = time.monotonic()
        return True

    def give(self) -> None:
        """Tell others soon; several at once are one."""
        self._again = True
        if self._giving is None:
            self._giving = asyncio.get_running_loop().create_task(self._give())

    async def _give(self) -> None:
        assert self._line is not None
        try:
            while self._again:
                self._again = False
                await fetch(self._line, "SELECT pg_notify($1, $2)", CHANNEL, self._me)
        except StoreError as error:
            log.debug("weft: a hint was lost (%s)", error)
        finally:
            self._giving = None

    async def close(self) -> None:
        """What was to be said is said."""
        while self._giving is not None:
            await asyncio.gather(self._giving, return_exceptions=True)


async def without_flush(connection: Connection) -> None:
    """Neither a hint nor a heartbeat is worth a flush to disk."""
    await connection.execute("SET synchronous_commit = off")
