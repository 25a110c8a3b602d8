"""A client for calls that may fail. It never sends a command twice, and never waits for long.

Whoever uses it expects any exception: whatever goes wrong between here and a Redis server, requests and runs go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from weft.stores.urls import url_without_password

log = logging.getLogger("weft")

ANSWER_SECONDS = 0.05
"""Answers that come later are not waited for."""
CALL_SECONDS = 1.0
"""A call in the background that takes longer has failed, and its connection is closed."""
CONNECTIONS_MAX = 4
TURNS = 5
"""How often the event loop may turn until it has read an answer that is there."""
Namespace = Callable[[], Awaitable[str]]
"""Returns the id of the deployment. Raises StoreError."""


def new_client(url: str) -> Redis:
    """Return a client that connects when it is first used."""
    pool = BlockingConnectionPool.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        retry_on_timeout=False,
        socket_timeout=CALL_SECONDS,
        socket_connect_timeout=CALL_SECONDS,
        socket_keepalive=True,
        max_connections=CONNECTIONS_MAX,
        timeout=CALL_SECONDS,  # for a free connection
        client_name="weft",
        protocol=2,
    )
    return Redis.from_pool(pool)


async def move_client(client: Redis, host: str, port: int) -> None:
    """Use another node of the same cluster from now on."""
    options = client.connection_pool.connection_kwargs
    options["host"], options["port"] = host or options.get("host"), port
    await client.connection_pool.disconnect()
    # Connections keep the address that they were made for.
    client.connection_pool.reset()  # type: ignore[no-untyped-call]


async def disconnect(client: Redis) -> None:
    """Close all connections of a client."""
    with contextlib.suppress(Exception):
        await client.aclose()


async def in_time(task: asyncio.Task[Any], seconds: float = ANSWER_SECONDS) -> bool:
    """Wait for a task, and return whether it ended in time. The task goes on if it did not."""
    await asyncio.wait({task}, timeout=seconds)
    for _ in range(TURNS):
        if task.done():
            break
        # If this process was busy itself, the answer may be there, and only has to be read.
        await asyncio.sleep(0)
    return task.done()


class Outage:
    """Logs when Redis stops answering and when it answers again, each once."""

    def __init__(self, url: str, consequence: str) -> None:
        self._url = url_without_password(url)
        self._consequence = consequence
        self._is_out = False

    def begins(self, error: BaseException | None) -> None:
        """Log a failure, unless it is known that Redis is away."""
        if not self._is_out:
            self._is_out = True
            late = f"did not answer within {ANSWER_SECONDS * 1000:.0f} ms"
            what = late if error is None else f"is away: {str(error) or type(error).__name__}"
            log.warning("weft: Redis at %s %s; %s", self._url, what.rstrip("."), self._consequence)

    def ends(self) -> None:
        """Log that Redis answers again, if it did not."""
        if self._is_out:
            self._is_out = False
            log.warning("weft: Redis at %s is back", self._url)
