"""What tests of the hot path share."""

import asyncio
import functools
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

from tests.redis_server import RedisServer
from weft.stores.hot.address import redis_address
from weft.stores.hot.redis_wal_server import RedisWalServer

LIMIT_S = 30.0
"""So long that no test ever gets there, unless it wants to."""

_namespaces = itertools.count(1)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own, and close the connections among its fixtures."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(close_after(fixtures))

    async def close_after(fixtures: dict[str, Any]) -> None:
        try:
            await test(**fixtures)
        finally:
            for fixture in fixtures.values():
                if hasattr(fixture, "identity"):
                    await fixture.close()
            await asyncio.sleep(0)  # what was closed is told so in the next round of the loop

    return run


def new_namespace() -> str:
    """Return the id of a deployment that no other test of this process has."""
    return f"test{next(_namespaces)}"


def wal_server(real: RedisServer, *, namespace: str = "test", limit_s: float = LIMIT_S) -> RedisWalServer:
    """Return a connection to a real server, not connected yet."""

    async def named() -> str:
        return namespace

    return RedisWalServer(redis_address(real.url), named, limit_s=limit_s)
