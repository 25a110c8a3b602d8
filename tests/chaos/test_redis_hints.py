"""Two hosts on one database that wake each other over Redis: at once, and without it by polling."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import msgspec
import pytest

import weft
from tests import servers
from tests.crash.hosting import QUICK
from tests.redis_server import RedisServer, own_redis
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host
from weft.runtime.orders import StartOrder
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.stores.postgres import PostgresStore

__all__ = ["own_redis"]

SECONDS_MAX = 100.0
NEVER_POLLS = msgspec.structs.replace(QUICK, lease_seconds=600.0, poll_seconds=3600.0, scan_seconds=3600.0)
POLLS = msgspec.structs.replace(QUICK, lease_seconds=600.0, poll_seconds=0.05, scan_seconds=1.0)


@pytest.fixture
def url() -> Iterator[str]:
    found = servers.database("redis_hosts")
    servers.empty(found)
    yield found
    servers.empty(found)


@asynccontextmanager
async def hosted(app: weft.App, redis: str, settings: Settings) -> AsyncIterator[RunService]:
    """Host an app whose store hears hints over Redis."""
    services: list[RunService] = []

    def heard() -> None:
        for service in services:
            if service.work is not None:
                service.work.on_hint()

    store = PostgresStore(app.url, durability="fast", redis=redis, heard=heard)
    await store.open()
    executor = PoolExecutor()
    given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=executor, settings=settings)
    service = RunService(store, given.clock, given.ids)
    services.append(service)
    host = Host(given, app.catalogue(), service)
    app.bind(service)
    try:
        async with host:
            yield service
    finally:
        app.bind(None)
        await store.close()
        executor.close()


def office(url: str, done: Counter[str]) -> weft.App:
    """Runs that wait for a message, and count what they do with it."""
    app = weft.App(url)

    @app.step
    async def note(text: str) -> str:
        done[text] += 1
        return text

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> list[str]:
        return [await note(f"{n}: {await ctx.receive('word', str)}") for _ in range(3)]

    return app


def test_messages_wake_the_owner_without_a_poll(own_redis: RedisServer, url: str) -> None:
    done: Counter[str] = Counter()
    here, other = office(url, done), weft.App(url)

    async def scene() -> None:
        async with (
            asyncio.timeout(SECONDS_MAX),
            hosted(here, own_redis.url, NEVER_POLLS),
            hosted(other, own_redis.url, NEVER_POLLS),
        ):
            own = await here.start("order", {"n": 1}, id="o-1")
            for word in ("a", "b", "c"):
                await other.get("o-1").send("word", word)
            assert await own.result() == ["1: a", "1: b", "1: c"]

    asyncio.run(scene())


def test_a_run_that_nobody_owns_wakes_a_host_without_a_poll(own_redis: RedisServer, url: str) -> None:
    """It was accepted by a process that hosts nothing."""
    done: Counter[str] = Counter()
    here = office(url, done)

    async def scene() -> None:
        async with asyncio.timeout(SECONDS_MAX), hosted(here, own_redis.url, NEVER_POLLS):
            sender = PostgresStore(url, durability="fast", redis=own_redis.url)
            await sender.open()
            service = RunService(sender, SystemClock(), TimeIds())
            await service.start(StartOrder(workflow="order", input={"n": 1}, id="o-1"))
            await sender.close()
            found = here.get("o-1")
            for word in ("a", "b", "c"):
                await found.send("word", word)
            assert await found.result() == ["1: a", "1: b", "1: c"]

    asyncio.run(scene())


@pytest.mark.parametrize("trouble", ["killed", "frozen", "emptied", "absent"])
def test_nothing_is_lost_or_repeated_whatever_redis_does(own_redis: RedisServer, url: str, trouble: str) -> None:
    done: Counter[str] = Counter()
    here, other = office(url, done), weft.App(url)
    all_steps: dict[str, list[Callable[[], object]]] = {
        "killed": [own_redis.kill, own_redis.start, own_redis.kill],
        "frozen": [own_redis.freeze, own_redis.thaw, own_redis.freeze],
        "emptied": [own_redis.flush, lambda: own_redis.command("CLIENT", "KILL", "TYPE", "pubsub"), own_redis.flush],
        "absent": [lambda: None] * 3,
    }
    steps = all_steps[trouble]
    redis = "redis://127.0.0.1:1" if trouble == "absent" else own_redis.url

    async def scene() -> None:
        async with asyncio.timeout(SECONDS_MAX), hosted(here, redis, POLLS), hosted(other, redis, POLLS):
            runs = [await here.start("order", {"n": n}, id=f"o-{n}") for n in range(20)]
            for word, step in zip("abc", steps, strict=True):
                await asyncio.to_thread(step)
                for n in range(20):
                    await other.get(f"o-{n}").send("word", word)
            for n, run in enumerate(runs):
                assert await run.result() == [f"{n}: {word}" for word in "abc"]

    asyncio.run(scene())
    assert done == {f"{n}: {word}": 1 for n in range(20) for word in "abc"}
