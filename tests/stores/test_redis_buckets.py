"""Token buckets in a real Redis server: shared, bounded by its clock, and gone when it is."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.redis_server import RedisServer, own_redis, two_nodes
from weft.stores.redis.buckets import RedisBuckets

__all__ = ["own_redis", "two_nodes"]

SLOW_RATE = 0.001
"""So slow that no token comes back during a test."""


async def _namespace() -> str:
    return "ns"


@asynccontextmanager
async def buckets(server: RedisServer, count: int = 1) -> AsyncIterator[list[RedisBuckets]]:
    """Connected buckets, as that many processes have them."""
    made = [RedisBuckets(server.url, _namespace) for _ in range(count)]
    try:
        for one in made:
            await answer(one, wanted=0)
        yield made
    finally:
        for one in made:
            await one.close()


async def take(one: RedisBuckets, name: str = "acme/anna", *, wanted: int = 1, burst: float = 10) -> int | None:
    return await one.take(name, wanted=wanted, per_second=SLOW_RATE, burst=burst)


async def answer(one: RedisBuckets, *, wanted: int = 1) -> int:
    """Ask until Redis is found."""
    while (given := await take(one, "probe", wanted=wanted)) is None:
        await asyncio.sleep(0.01)
    return given


def test_a_bucket_is_shared_and_gives_no_more_than_it_has(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with buckets(own_redis, 2) as (here, there):
            assert await take(here, wanted=7) == 7
            assert await take(there, wanted=7) == 3
            assert await take(here) == 0
            assert await take(here, "acme/bert") == 1

    asyncio.run(scenario())


def test_a_bucket_fills_by_the_clock_of_the_server(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with buckets(own_redis) as (here,):
            assert await here.take("anna", wanted=10, per_second=1.0, burst=10) == 10
            key = "weft:{ns}:limit:anna"
            at = float(str(own_redis.command("HGET", key, "at")))
            seconds, _ = own_redis.command("TIME")  # type: ignore[misc]
            assert 0 <= float(seconds) + 1 - at < 3_600
            own_redis.command("HSET", key, "at", f"{at - 4:.6f}")
            assert await here.take("anna", wanted=10, per_second=1.0, burst=10) == 4
            own_redis.command("HSET", key, "at", f"{at - 4000:.6f}")
            assert await here.take("anna", wanted=20, per_second=1.0, burst=10) == 10, "it is full, and not more"
            # A clock that was set back takes nothing away.
            own_redis.command("HSET", key, "at", f"{at + 4000:.6f}", "tokens", "2")
            assert await here.take("anna", wanted=10, per_second=1.0, burst=10) == 2

    asyncio.run(scenario())


def test_a_bucket_is_forgotten_when_it_must_be_full_again(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with buckets(own_redis) as (here,):
            await here.take("anna", wanted=1, per_second=5.0, burst=10)
            left = own_redis.command("PTTL", "weft:{ns}:limit:anna")
            assert isinstance(left, int)
            assert 2_000 < left <= 3_000

    asyncio.run(scenario())


def test_an_emptied_server_begins_with_full_buckets(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with buckets(own_redis) as (here,):
            assert await take(here, wanted=10) == 10
            own_redis.flush()
            own_redis.command("SCRIPT", "FLUSH")
            assert await take(here, wanted=11) == 10

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["killed", "frozen", "refusing"])
def test_a_server_that_is_away_is_asked_once_and_found_again(own_redis: RedisServer, how: str) -> None:
    """Whoever asks hears at once that nobody answers; the server is looked for in the background."""
    away: dict[str, Callable[[], object]] = {
        "killed": own_redis.kill,
        "frozen": own_redis.freeze,
        "refusing": lambda: own_redis.command("CONFIG", "SET", "min-replicas-to-write", "1"),
    }
    back: dict[str, Callable[[], object]] = {
        "killed": own_redis.start,
        "frozen": own_redis.thaw,
        "refusing": lambda: own_redis.command("CONFIG", "SET", "min-replicas-to-write", "0"),
    }

    async def scenario() -> None:
        async with buckets(own_redis) as (here,):
            away[how]()
            assert await take(here) is None
            for _ in range(1000):  # these ask nobody
                assert await take(here) is None
            back[how]()
            assert await answer(here) == 1

    asyncio.run(scenario())


def test_a_server_that_never_was_there_is_no_error() -> None:
    async def scenario() -> None:
        here = RedisBuckets("redis://127.0.0.1:1", _namespace)
        for _ in range(3):
            assert await take(here) is None
            await asyncio.sleep(0)
        await here.close()

    asyncio.run(scenario())


def test_an_outage_is_logged_once_with_its_end(own_redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with buckets(own_redis) as (here,):
            with caplog.at_level("INFO", "weft"):
                own_redis.kill()
                for _ in range(3):
                    await take(here)
                own_redis.start()
                await answer(here)

    asyncio.run(scenario())
    said = [record.getMessage() for record in caplog.records if record.name == "weft"]
    assert len(said) == 2
    assert "every server limits requests by itself" in said[0]
    assert "is back" in said[1]


def test_a_bucket_of_a_cluster_is_found_from_every_node(two_nodes: list[RedisServer]) -> None:
    async def scenario() -> None:
        given = []
        for node in two_nodes:
            async with buckets(node) as (here,):
                given.append(await take(here, wanted=7))
        assert given == [7, 3]

    asyncio.run(scenario())
