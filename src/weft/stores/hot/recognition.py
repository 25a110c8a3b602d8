"""Recognise the Redis server of this deployment, so that no host writes to one that was emptied or replaced.

A random value stands both in the server and in the durable store. If the server has another value, or none, it is a
different server or has lost its data. This host then keeps no WAL there until the server has the right value again. If
no living host has seen the right value for a minute, the hosts agree on a new one, write it to the server, and use it.
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
from weft.stores.hot.facts import refuse_unfit_server

log = logging.getLogger("weft")

PATIENCE_SECONDS: Final = 60.0
"""If no living host has seen the right value for this long, the hosts agree on a new one."""


class _NotWritable(Exception):
    """The server takes no writes: it is full, or a replica, or has gone away."""


class RedisRecognition:
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

    async def refusal(self) -> str:
        """Return why a server in use must not be used any longer; empty if it may be used or does not answer."""
        try:
            self.facts = await self._server.facts()
            refuse_unfit_server(self.facts, self._server.url)
        except UsageError as error:
            return error.message
        except StoreError:
            return ""  # the next write reports it
        return ""

    async def recognise(self) -> str | None:
        """Return the id of the server if it is the one of this deployment. Call this before a WAL is opened.

        Otherwise returns None: ask again later. Raises StoreError if the durable store does not answer.
        """
        try:
            return await self._recognise()
        except _NotWritable as error:
            self._refuse_server(str(error))
            return None

    async def _recognise(self) -> str | None:
        try:
            self.facts = await self._server.facts()
            refuse_unfit_server(self.facts, self._server.url)
            found = await self._server.identity()
        except (StoreError, UsageError) as error:
            await self._ids.see_redis_id(self._host, None)
            self._refuse_server(error.message)
            return None
        expected = await self._ids.redis_id()
        if expected is None:
            expected, found = await self._agree_on_first_id(found)
        await self._ids.see_redis_id(self._host, found)
        if found != expected and await self._is_unseen(expected):
            expected, found = await self._agree_on_new_id(expected, found)
        if found != expected:
            what = "was emptied" if found is None else "is another one, or an old copy"
            self._refuse_server(f"The Redis server is not the one that other hosts use: it {what}.")
            return None
        if await self._mark(found, replace=found) != found:
            return None  # it was emptied or replaced just now
        self._unseen_since = None
        if self.problem:
            log.info("weft: Redis is used again")
            self.problem = ""
        return found

    async def _agree_on_first_id(self, found: str | None) -> tuple[str, str]:
        """Agree on the first value: the one that the server has, which is a random one if it had none."""
        held = await self._mark(found or secrets.token_hex(16))
        return await self._ids.agree_redis_id(None, held), held

    async def _mark(self, value: str, *, replace: str | None = None) -> str:
        """Write the value to the server, also to see whether it takes writes. Returns the value that it has then."""
        try:
            return await self._server.set_identity(value, replace=replace)
        except StoreError as error:
            raise _NotWritable(error.message) from error

    async def _is_unseen(self, expected: str) -> bool:
        """Return whether no living host has seen the right value for ``PATIENCE_SECONDS``."""
        seen = await self._ids.seen_redis_ids()
        now = self._monotonic()
        if any(seen.get(host) == expected for host in await self._living()):
            self._unseen_since = None
            return False
        if self._unseen_since is None:
            self._unseen_since = now
        return now - self._unseen_since >= PATIENCE_SECONDS

    async def _agree_on_new_id(self, expected: str, found: str | None) -> tuple[str, str]:
        """Agree on a new value and write it to the server. Two hosts that do so at once get the same value."""
        agreed = await self._ids.agree_redis_id(expected, secrets.token_hex(16))
        held = await self._mark(agreed, replace=found)
        await self._ids.see_redis_id(self._host, held)
        return agreed, held

    def _refuse_server(self, problem: str) -> None:
        if self.problem != problem:
            log.warning("weft: %s Runs go on without it, at the speed of the durable store.", problem)
            self.problem = problem
