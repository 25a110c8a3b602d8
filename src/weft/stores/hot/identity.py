"""Recognise the Redis server of this deployment, so that an emptied or replaced one is never taken for it.

The server holds a random value that the durable store knows as well. With another value, or none, the server is another
one or has lost its data; then it holds no WALs of this host until it has the right value again. If no living host has
seen the right value for a minute, all hosts agree on a new one, and the server with the new content is theirs.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from weft.core.ids import HostId
from weft.errors import StoreError, UsageError
from weft.ports.wal_server import IdentifiedServer, ServerFacts
from weft.ports.wals import RedisIds
from weft.stores.hot.facts import check_server

log = logging.getLogger("weft")

PATIENCE_SECONDS: Final = 60.0
"""How long no living host has seen the right value before a new one is agreed upon."""


class ServerRecognition:
    """Knows whether a server is the one of this deployment. One per host."""

    def __init__(
        self,
        server: IdentifiedServer,
        ids: RedisIds,
        host: HostId,
        living: Callable[[], Awaitable[Sequence[HostId]]],
        monotonic: Callable[[], float],
    ) -> None:
        self._server = server
        self._ids = ids
        self._host = host
        self._living = living
        self._monotonic = monotonic
        self._unseen_since: float | None = None
        """Since when no living host has seen the right value, as far as this host knows."""
        self.facts: ServerFacts | None = None
        """What the server said about itself when it was last asked; None if it has not answered yet."""
        self.problem = ""
        """Why the server is not used, for people; empty if it is."""

    async def recognise(self) -> str | None:
        """Return the id of the server if it is the one of this deployment. Call this before a WAL is opened.

        Otherwise returns None: ask again later. Raises StoreError if the durable store does not answer.
        """
        try:
            self.facts = await self._server.facts()
            check_server(self.facts, self._server.url)
            found = await self._server.identity()
        except (StoreError, UsageError) as error:
            await self._ids.see_redis_id(self._host, None)
            self._refuse(error.message)
            return None
        expected = await self._ids.redis_id()
        if expected is None:
            expected, found = await self._introduce(found)
        await self._ids.see_redis_id(self._host, found)
        if found != expected and await self._is_unseen(expected):
            expected, found = await self._agree(expected, found)
        if found != expected:
            what = "was emptied" if found is None else "is another one, or an old copy"
            self._refuse(f"The Redis server is not the one that other hosts use: it {what}.")
            return None
        self._unseen_since = None
        if self.problem:
            log.info("weft: Redis is used again")
            self.problem = ""
        return found

    async def _introduce(self, found: str | None) -> tuple[str, str]:
        """Agree on the first value, which is the one that the server has, if it has one."""
        expected = await self._ids.agree_redis_id(None, found or secrets.token_hex(16))
        return expected, await self._server.set_identity(expected)

    async def _is_unseen(self, expected: str) -> bool:
        """Return whether no living host has seen the right value for long enough."""
        seen = await self._ids.seen_redis_ids()
        now = self._monotonic()
        if any(seen.get(host) == expected for host in await self._living()):
            self._unseen_since = None
            return False
        if self._unseen_since is None:
            self._unseen_since = now
        return now - self._unseen_since >= PATIENCE_SECONDS

    async def _agree(self, expected: str, found: str | None) -> tuple[str, str]:
        """Agree on a new value, and mark the server with it. Of two hosts at once, one decides for both."""
        agreed = await self._ids.agree_redis_id(expected, secrets.token_hex(16))
        held = await self._server.set_identity(agreed, replace=found)
        await self._ids.see_redis_id(self._host, held)
        return agreed, held

    def _refuse(self, problem: str) -> None:
        if self.problem != problem:
            log.warning("weft: %s Runs go on without it, at the speed of the durable store.", problem)
            self.problem = problem
