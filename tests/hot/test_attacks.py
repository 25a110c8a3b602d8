"""Whatever happens to a real Redis: every run ends right, the trouble is named until it is over, and the host stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

import weft
from tests.hot.test_app import app_of, chained, reported, until
from tests.hot.test_app import url as url  # noqa: PLC0414 - a fixture
from tests.redis_server import RedisServer
from weft.runtime import redis_watch
from weft.stores.hot import keeper

RUNS = 12
STOP_SECONDS_MAX = 60.0
"""Longer than all the time limits of a stop together. A host that hangs never gets there."""


def fill(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "maxmemory", "1mb")


def make_room(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "maxmemory", "0")


def demote(redis: RedisServer) -> None:
    redis.command("REPLICAOF", "127.0.0.1", "1")


def let_it_evict(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")


def let_it_keep(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")


TROUBLES: dict[str, tuple[Callable[[RedisServer], None], str, Callable[[RedisServer], object] | None]] = {
    "full": (fill, "OOM", make_room),
    "read-only": (demote, "READONLY", RedisServer.promote),
    "evicts": (let_it_evict, "evicts keys", let_it_keep),
    "emptied": (RedisServer.flush, "was emptied", None),
    "killed": (RedisServer.kill, "cannot be used", RedisServer.start),
    "frozen": (RedisServer.freeze, "cannot be used", RedisServer.thaw),
}
"""What happens to the server, what the host says then, and what ends it. After it was emptied, hosts wait a minute."""


async def working(app: weft.App, attack: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Keep runs at work while something happens, and let all of them end right."""

    async def one(n: int) -> None:
        for again in range(3):
            assert await chained(app, 100 * again + n) == 32 * (100 * again + n)

    async with asyncio.TaskGroup() as group:
        for n in range(RUNS):
            group.create_task(one(n))
        group.create_task(attack())


async def has_wal(redis: RedisServer) -> bool:
    return bool(await asyncio.to_thread(redis.command, "KEYS", "*:head"))


@pytest.mark.parametrize("name", TROUBLES)
def test_runs_go_on_through_a_trouble_which_is_named_until_it_is_over(
    name: str, url: str, own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(redis_watch, "LOOK_SECONDS", 0.1)
    begin, says, end = TROUBLES[name]

    async def play() -> None:
        async with app_of(url, own_redis) as app:
            assert await chained(app, 1) == 32

            async def attack() -> None:
                await asyncio.to_thread(begin, own_redis)

            await working(app, attack)

            async def is_named() -> bool:
                report = await reported(app)
                return not report["used"] and says in report["problem"]

            await until(is_named)
            assert await chained(app, 2) == 64
            if end is not None:
                await asyncio.to_thread(end, own_redis)

                async def is_used() -> bool:
                    return bool((await reported(app))["used"])

                await until(is_used)
                assert await has_wal(own_redis)
                assert await chained(app, 3) == 96

    asyncio.run(play())


@pytest.mark.parametrize("name", ["full", "read-only", "killed", "frozen"])
def test_a_host_starts_in_a_trouble_names_it_and_stops(
    name: str,
    url: str,
    own_redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(redis_watch, "LOOK_SECONDS", 0.1)
    begin, says, _ = TROUBLES[name]
    begin(own_redis)

    async def play() -> None:
        app = app_of(url, own_redis)
        async with app:
            assert await chained(app, 1) == 32

            async def is_named() -> bool:
                report = await reported(app)
                return bool(report) and not report["used"] and says in report["problem"]

            await until(is_named)
            assert await count_of_wals(url) == 0, "each attempt leaves a row"

    asyncio.run(play())
    assert "is away: ;" not in caplog.text, "nobody says why"


async def count_of_wals(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM weft.wals"))
    finally:
        await connection.close()


@pytest.mark.parametrize("hot", ["event", "end", None])
@pytest.mark.parametrize("name", ["full", "frozen", "killed"])
def test_a_host_stops_whatever_redis_does(name: str, hot: str | None, url: str, own_redis: RedisServer) -> None:
    begin, _, _ = TROUBLES[name]

    async def play() -> None:
        app = app_of(url, own_redis, hot)
        await app.__aenter__()
        runs = [await app.start("chain", {"n": n}) for n in range(RUNS)]
        await asyncio.to_thread(begin, own_redis)
        async with asyncio.timeout(STOP_SECONDS_MAX):
            await app.__aexit__(None, None, None)
        async with app_of(url, own_redis, None) as other:
            assert [await other.get(run.id).result() for run in runs] == [32 * n for n in range(RUNS)]

    asyncio.run(play())


async def say_garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(100):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(100):
        pass


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def answer_without_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"$1000000000\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 10_000)
        await asyncio.sleep(0.01)


STRANGERS = [say_garbage, say_nothing, hang_up, answer_without_end]


@pytest.mark.parametrize("hot", ["event", None])
@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_is_no_redis_is_named_and_stops_no_host(
    stranger: Any, hot: str | None, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_watch, "LOOK_SECONDS", 0.1)

    async def play() -> None:
        talks: set[Any] = set()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            talks.add(asyncio.current_task())
            try:
                with contextlib.suppress(OSError):
                    await stranger(reader, writer)
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        app = app_of(url, SimpleNamespace(url=f"redis://127.0.0.1:{port}"), hot)  # type: ignore[arg-type]
        async with asyncio.timeout(STOP_SECONDS_MAX), app:
            assert await chained(app, 1) == 32

            async def is_named() -> bool:
                report = await reported(app)
                return bool(report) and not report["used"] and bool(report["problem"])

            await until(is_named)
        server.close()
        await asyncio.gather(*talks, return_exceptions=True)

    asyncio.run(play())
