"""An app on real servers: it says what Redis is for and what may be lost, and works whether or not Redis is there."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests import servers
from tests.contract.kit import HERE, RUN, append, new
from tests.redis_server import RedisServer
from tests.server.kit import serving
from weft.cli.run_list import print_status
from weft.errors import UsageError
from weft.ports.store import Outcome
from weft.stores import RedisUse, open_store

WAIT_SECONDS_MAX = 60.0


@pytest.fixture
def url() -> str:
    url = servers.database("hot_app")
    asyncio.run(_make_tables(url))
    servers.empty(url)
    return url


async def _make_tables(url: str) -> None:
    async with weft.Client(url):
        pass


def app_of(url: str, redis: RedisServer, hot: str | None = "event") -> weft.App:
    app = weft.App(url, redis=redis.url, hot=hot)

    @app.step
    async def double(n: int) -> int:
        return 2 * n

    @app.workflow
    async def chain(ctx: weft.Context, n: int) -> int:
        for _ in range(5):
            n = await double(n)
        return n

    return app


async def chained(app: weft.App, n: int) -> Any:
    run = await app.start("chain", {"n": n})
    return await run.result()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not await condition():
            await asyncio.sleep(0.02)


async def reported(app: weft.App) -> dict[str, Any]:
    (host,) = await app.service.store.hosts.list_all()
    about = host.about.get("redis")
    return dict(about) if isinstance(about, dict) else {}


def test_hops_go_through_redis_and_all_of_them_end_in_postgres(url: str, own_redis: RedisServer) -> None:
    async def play() -> None:
        async with app_of(url, own_redis) as app:
            assert await chained(app, 1) == 32
            assert "evalsha" in own_redis.info("commandstats")
        assert own_redis.command("KEYS", "*:log") == []

    asyncio.run(play())

    async def read() -> None:
        async with weft.Client(url) as client:
            assert [await run.status() async for run in client.list()] == ["completed"]

    asyncio.run(read())


def test_the_log_the_row_of_the_host_and_the_status_say_what_may_be_lost(
    url: str, own_redis: RedisServer, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, "weft")

    async def play() -> None:
        async with app_of(url, own_redis, "10s") as app:
            await until(lambda: _has_report(app))
            report = await reported(app)
            assert (report["role"], report["policy"], report["used"]) == ("hot", "10s", True)
            assert report["server"].endswith("AOF everysec, 0 replicas")
            assert "those of the last second" in report["may_be_lost"]
            await print_status(url=url, app=None, json=True)
            await print_status(url=url, app=None, json=False)

    asyncio.run(play())
    (line,) = [record.getMessage() for record in caplog.records if "Redis at" in record.getMessage()]
    assert f"Redis at {own_redis.url} (hot, policy 10s)" in line
    assert "Answered commands, results and irreversible steps are never lost" in line
    printed = capsys.readouterr().out
    document, _, text = printed.partition("\nstore")
    assert json.loads(document)["redis"][0]["hosts"] == 1
    assert "redis   1 host: Redis at" in text


@pytest.mark.parametrize("is_full", [False, True])
def test_a_host_that_uses_redis_as_an_aid_only_reads_the_log_of_a_dead_host(
    url: str, own_redis: RedisServer, *, is_full: bool
) -> None:
    async def die() -> None:
        store = open_store(url, redis=RedisUse(url=own_redis.url, hot="end"))
        await store.open()
        await store.hosts.join(HERE, lease_ms=100)
        for given in (append(count=0, create=new(RUN)), append(count=2), append(seq=2)):
            assert await store.log.commit([given], HERE) == [Outcome.ACCEPTED]
        await store.close()

    async def play() -> None:
        async with app_of(url, own_redis, None) as app:
            wals = app.service.store.wals
            assert wals is not None

            async def is_drained() -> bool:
                return not await wals.undrained([HERE])

            await until(is_drained)
            row = await app.service.store.directory.row(RUN)
            assert row is not None
            assert row.seq == 3, "waiting for a minute and giving it up would have lost them"
            assert await wals.losses() == []
        assert own_redis.command("KEYS", "*:log") == []

    asyncio.run(die())
    logs = own_redis.command("KEYS", "*:log")
    assert isinstance(logs, list)
    assert len(logs) == 1
    if is_full:
        own_redis.command("CONFIG", "SET", "maxmemory", "1mb")
    asyncio.run(play())


async def _has_report(app: weft.App) -> bool:
    return bool(await reported(app))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_host_says_what_redis_does_for_its_store(kind: str, tmp_path: Path, own_redis: RedisServer) -> None:
    url = servers.database("hot_app") if kind == "postgres" else f"sqlite:///{tmp_path / 'weft.db'}"

    async def play() -> None:
        async with app_of(url, own_redis, None) as app:
            said = app.service.status.redis().may_be_lost  # type: ignore[misc]
            assert ("wakes hosts" in said) is (kind == "postgres")
            assert "counts requests and carries tasks of streams, which the store keeps too" in said

    asyncio.run(play())


def test_a_server_that_evicts_is_refused_before_anything_runs(url: str, own_redis: RedisServer) -> None:
    own_redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

    async def play() -> None:
        with pytest.raises(UsageError, match="evicts keys"):
            async with app_of(url, own_redis):
                pass
        async with app_of(url, own_redis, hot=None) as app:  # as an aid, it may
            assert await chained(app, 1) == 32

    asyncio.run(play())


def test_a_server_without_an_aof_is_warned_about(url: str, caplog: pytest.LogCaptureFixture) -> None:
    server = RedisServer().start()
    try:

        async def play() -> None:
            async with app_of(url, server) as app:
                assert await chained(app, 1) == 32

        asyncio.run(play())
    finally:
        server.remove()
    assert any("Redis has no AOF" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("hot", ["event", None])
def test_a_server_that_is_away_at_the_start_is_no_failure(url: str, own_redis: RedisServer, hot: str | None) -> None:
    own_redis.kill()

    async def play() -> None:
        async with app_of(url, own_redis, hot) as app:
            assert await chained(app, 1) == 32
            await until(lambda: _has_report(app))
            report = await reported(app)
            assert report["used"] is False
            assert "cannot be used" in report["problem"]

    asyncio.run(play())


def test_a_host_attaches_when_the_server_is_there(url: str, own_redis: RedisServer) -> None:
    own_redis.kill()

    async def play() -> None:
        async with app_of(url, own_redis) as app:
            assert await chained(app, 1) == 32
            await asyncio.to_thread(own_redis.start)
            await until(_has_wal)
            assert await chained(app, 2) == 64
            assert "evalsha" in own_redis.info("commandstats")

    async def _has_wal() -> bool:
        return own_redis.command("KEYS", "*:head") != []

    asyncio.run(play())


def test_a_server_says_what_may_be_lost_and_counts_what_was(url: str, own_redis: RedisServer) -> None:
    async def die() -> None:
        store = open_store(url, redis=RedisUse(url=own_redis.url, hot="end"))
        await store.open()
        await store.hosts.join(HERE, lease_ms=100)
        for given in (append(count=0, create=new(RUN)), append(count=2)):
            assert await store.log.commit([given], HERE) == [Outcome.ACCEPTED]
        await store.close()

    asyncio.run(die())
    lost = own_redis.command("KEYS", "*:log") + own_redis.command("KEYS", "*:head")  # type: ignore[operator]
    own_redis.command("DEL", *lost)  # as a server does that has lost its last second
    with serving(app_of(url, own_redis)) as server:
        ready = server.get("/readyz").json
        assert ready["status"] == "ready"
        assert (ready["redis"]["role"], ready["redis"]["policy"]) == ("hot", "event")
        assert "those of the last second if the machine of Redis loses power" in ready["redis"]["may_be_lost"]
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while b"weft_hot_lost_total 1.0" not in server.get("/metrics").raw:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (loss,) = server.get("/api/v1/status").json["losses"]
        assert (loss["reason"], loss["runs"]) == ("gone", ["id of run-1"])
