"""How many requests a caller may make: at one server, and at all of them together if they share Redis."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.redis_server import RedisServer, own_redis
from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from weft.server.limits import KEPT_SECONDS, RequestLimits, RequestRates
from weft.server.problems import RequestRefused
from weft.stores.redis.buckets import RedisBuckets
from weft.stores.redis.namespace import namespace_of

__all__ = ["own_redis"]


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Buckets:
    """One shared bucket that a test fills; None: nobody answers."""

    def __init__(self, tokens: int | None) -> None:
        self.tokens = tokens
        self.wanted: list[int] = []

    async def take(self, name: str, *, wanted: int, per_second: float, burst: float) -> int | None:
        del name, per_second, burst
        self.wanted.append(wanted)
        await asyncio.sleep(0)
        if self.tokens is None:
            return None
        given = min(wanted, self.tokens)
        self.tokens -= given
        return given

    async def close(self) -> None:
        """Do nothing."""


async def allowed(rates: RequestRates, caller: str = "a") -> bool:
    try:
        await rates.take(caller)
    except RequestRefused:
        return False
    return True


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


# --- one server ---------------------------------------------------------------------------------------------------


def test_a_bucket_fills_again_and_callers_have_one_each() -> None:
    clock = Clock()
    rates = RequestRates(1.0, callers_max=2, monotonic=clock)

    async def scene() -> None:
        assert await allowed(rates)
        assert await allowed(rates)
        clock.now = 0.5
        assert not await allowed(rates)
        assert await allowed(rates, "b")
        clock.now = 1.6
        assert await allowed(rates)
        assert await allowed(rates, "c")
        assert len(rates._buckets) == 2

    play(scene())


# --- several servers ----------------------------------------------------------------------------------------------


def test_a_server_takes_a_few_tokens_at_once_and_spends_them() -> None:
    buckets = Buckets(10_000)
    rates = RequestRates(1_000.0, lambda: buckets, monotonic=Clock())

    async def scene() -> None:
        for _ in range(30):
            assert await allowed(rates)
        assert buckets.wanted == [10, 10, 10]

    play(scene())


def test_requests_at_the_same_time_share_one_question() -> None:
    buckets = Buckets(60)
    rates = RequestRates(1.0, lambda: buckets, monotonic=Clock())

    async def scene() -> None:
        answers = await asyncio.gather(*(allowed(rates) for _ in range(100)))
        assert answers.count(True) == 60
        assert len(buckets.wanted) == 2

    play(scene())


def test_tokens_that_were_not_spent_are_worth_nothing_later() -> None:
    buckets, clock = Buckets(10), Clock()
    rates = RequestRates(1_000.0, lambda: buckets, monotonic=clock)

    async def scene() -> None:
        assert await allowed(rates)
        clock.now = KEPT_SECONDS + 0.1
        assert not await allowed(rates)

    play(scene())


def test_requests_of_nobody_in_particular_are_counted_by_each_server() -> None:
    buckets = Buckets(0)
    rates = RequestRates(1.0, lambda: buckets, unnamed="/", monotonic=Clock())

    async def scene() -> None:
        assert await allowed(rates, "/")
        assert not await allowed(rates)

    play(scene())


def test_without_an_answer_a_server_counts_by_itself() -> None:
    buckets = Buckets(None)
    rates = RequestRates(1.0, lambda: buckets, monotonic=Clock())

    async def scene() -> None:
        assert [await allowed(rates) for _ in range(3)] == [True, True, False]

    play(scene())


RATE, BURST = 5, 10


def test_a_limit_holds_over_two_servers_and_at_each_while_redis_is_away(own_redis: RedisServer, tmp_path: Path) -> None:
    url, limits = f"sqlite:///{tmp_path}/weft.db", RequestLimits(rate_per_second=RATE)
    with serving(shop(url), limits=limits) as one, serving(shop(url), limits=limits) as two, ExitStack() as closing:
        for server in (one, two):
            buckets = server.inside(_share(server, own_redis.url))
            closing.callback(lambda server=server, buckets=buckets: server.inside(buckets.close()))
        key = _until_shared(own_redis, one, two)

        own_redis.command("DEL", key)
        began = time.monotonic()
        answers = [server.get(f"{API}/runs").status for _ in range(2 * BURST) for server in (one, two)]
        # Alone, each would allow this many.
        assert BURST <= answers.count(200) <= BURST + RATE * (time.monotonic() - began) + 1
        assert set(answers) <= {200, 429}

        own_redis.kill()
        for server in (one, two):
            answers = []
            # The shared bucket is empty. That of the server may be, too, if it has served the first requests.
            while answers.count(200) < BURST // 2:
                answers.append(server.get(f"{API}/runs").status)
            assert set(answers) <= {200, 429}

        own_redis.start()
        assert _until_shared(own_redis, one, two) == key


async def _share(server: Server, url: str) -> RedisBuckets:
    service = server.app.service
    service.rate_buckets = buckets = RedisBuckets(url, lambda: namespace_of(service.store))
    return buckets


def _until_shared(redis: RedisServer, *servers: Server) -> str:
    """Make requests until Redis has counted some of every server. Returns the key of the bucket."""
    keys: list[str] = []
    for server in servers:
        redis.flush()
        while not (keys := [key for key in _keys(redis) if not key.endswith(":limit:")]):
            assert server.get(f"{API}/runs").status in (200, 429)
    (key,) = keys
    assert key.startswith("weft:{")
    assert key.endswith("}:limit:/local")
    return key


def _keys(redis: RedisServer) -> list[str]:
    found = redis.command("KEYS", "weft:*")
    assert isinstance(found, list)
    return found
