"""A host under load while the server cuts its sessions: terminated, restarted at once, switched to read-only."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg  # type: ignore[import-untyped]

import weft
from tests.servers import Cluster
from weft.errors import StoreError

T = TypeVar("T")

PAUSE_SECONDS = 0.6
AT_ONCE = 30
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weft'"


def shop(url: str) -> tuple[weft.App, weft.Workflow[[str], int]]:
    """A workflow with steps, a child and a message, so that every way into the store is used."""
    app = weft.App(url)

    @app.step
    async def add(number: int) -> int:
        await asyncio.sleep(0.01)
        return number + 1

    @app.workflow
    async def part(ctx: weft.Context, number: int) -> int:
        return await add(number)

    @app.workflow
    async def count(ctx: weft.Context, name: str) -> int:
        number = 0
        for _ in range(3):
            number = await add(number)
        number = await part(number)
        await ctx.sleep(0.05)
        return await add(number)

    return app, count


class Cutting:
    """Cuts what it can, in turn."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kinds = itertools.cycle((self._terminate, self._restart, self._read_only, self._terminate))
        self.cuts = 0

    async def go_on(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(PAUSE_SECONDS)
            await next(self._kinds)()
            self.cuts += 1

    async def _terminate(self) -> None:
        await self._execute(_TERMINATE)

    async def _restart(self) -> None:
        await asyncio.to_thread(self._cluster.stop, signal.SIGQUIT)
        await asyncio.to_thread(self._cluster.start)

    async def _read_only(self) -> None:
        """As after a failover to a server that is not the primary yet: every write is refused."""
        await self._execute("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
        await asyncio.sleep(PAUSE_SECONDS / 2)
        await self._execute("ALTER SYSTEM SET default_transaction_read_only = off", "SELECT pg_reload_conf()")
        await self._execute(_TERMINATE)

    async def _execute(self, *texts: str) -> None:
        connection = await asyncpg.connect(self._cluster.url(), timeout=100)
        for text in texts:
            await connection.execute(text)
        await connection.close()


async def cut_under_load(cluster: Cluster, cuts: int, at_once: int = AT_ONCE) -> tuple[int, int]:
    """Start runs all the time until so many cuts were made; how many were started, and how many completed."""
    app, count = shop(cluster.url())
    cutting = Cutting(cluster)
    numbers = itertools.count()
    results: list[int] = []

    async def customer() -> None:
        while not storm.done():
            name = f"c{next(numbers)}"
            handle = await stubborn(lambda name=name: app.start(count(name), id=name))  # type: ignore[misc]
            results.append(await stubborn(handle.result))

    async with app:
        storm = asyncio.create_task(cutting.go_on(cuts))
        await asyncio.gather(*(customer() for _ in range(at_once)))
        await storm
    assert cutting.cuts == cuts
    return next(numbers), results.count(5)


async def stubborn(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, however often the store is away."""
    while True:
        with contextlib.suppress(StoreError):
            return await ask()
        await asyncio.sleep(0.05)
