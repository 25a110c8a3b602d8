"""Wake-ups over a real Redis server: heard by themselves, and nothing is lost when it is away, slow or emptied."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests import servers
from tests.contract.kit import HERE, RUN, append, changed, mail, new
from tests.redis_server import RedisServer, own_redis
from weft.core.ids import Epoch, RunUid
from weft.ports.tasks import TaskOffer
from weft.stores.postgres import PostgresStore
from weft.stores.postgres import hints as postgres_hints
from weft.stores.redis import hints as redis_hints
from weft.stores.redis.hints import RedisHints

__all__ = ["own_redis"]

Write = Callable[[PostgresStore], Awaitable[Any]]
SECONDS_MAX = 20.0


class Process:
    """One process's view of the store."""

    def __init__(self, url: str, redis: str | None) -> None:
        self.heard = asyncio.Event()
        self.store = PostgresStore(url, durability="fast", redis=redis, heard=self.heard.set)

    @property
    def hears(self) -> bool:
        assert self.store._parts is not None
        redis = self.store._parts[0]._redis
        return redis is not None and redis.hears

    async def hears_is(self, wanted: bool) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while self.hears is not wanted:
                await asyncio.sleep(0.01)

    async def wakes(self) -> bool:
        """Wait to be woken, then return whether the store knows of news."""
        async with asyncio.timeout(SECONDS_MAX):
            await self.heard.wait()
        self.heard.clear()
        return await changed(self.store)

    async def settle(self) -> None:
        """Hear everything that there is."""
        await self.hears_is(True)
        while self.heard.is_set() or await changed(self.store):
            self.heard.clear()
            await asyncio.sleep(2 * redis_hints.WAKE_SECONDS_MIN)


@asynccontextmanager
async def two(redis: RedisServer, *, sender: str | None = "") -> AsyncIterator[tuple[Process, Process]]:
    """Two processes and a run. Both have heard all that there was."""
    url = servers.database("redis_hints")
    here, there = Process(url, redis.url if sender == "" else sender), Process(url, redis.url)
    await asyncio.to_thread(servers.empty, url)
    for each in (here, there):
        await each.store.open()
        await each.store.hosts.join(HERE, lease_ms=10_000)  # opens the connection that listens to Postgres
    try:
        await here.store.log.commit([append(count=0, create=new())], HERE)
        if sender == "":
            await here.settle()
        await there.settle()
        yield here, there
    finally:
        for each in (here, there):
            await each.store.close()


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that only a hint can say that something changed."""
    monkeypatch.setattr(postgres_hints, "SILENCE_SECONDS_MAX", 3600.0)


def _offer() -> TaskOffer:
    return TaskOffer(uid=RunUid(RUN), task=1, attempt=1, delivery=1, step="s", queue="q", body=b"1", epoch=Epoch(1))


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.log.send([mail()]),
        lambda store: store.log.create([new("made", owner=None, start=b"1")]),
        lambda store: store.log.commit([append(status="completed")], HERE),
        lambda store: store.tasks.offer([_offer()]),
        lambda store: store.hosts.leave(HERE),
    ],
    ids=["mail", "a new run", "an end", "a task", "a host that leaves"],
)
def test_what_concerns_others_wakes_others_and_not_oneself(own_redis: RedisServer, write: Write) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, there):
            await write(here.store)
            assert await there.wakes()
            assert not await changed(there.store)
            assert not await changed(here.store)

    asyncio.run(scenario())


def test_a_plain_append_tells_nobody(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, _there):
            before = _published(own_redis)
            await here.store.log.commit([append()], HERE)
            await here.store.close()
            assert _published(own_redis) == before

    asyncio.run(scenario())


def test_a_hint_is_sent_after_the_commit(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, there):
            before = _published(own_redis)
            other = await asyncpg.connect(there.store.url)
            async with other.transaction():
                await other.execute("LOCK TABLE weft.inbox")
                sending = asyncio.create_task(here.store.log.send([mail()]))
                await asyncio.sleep(0.2)
                assert _published(own_redis) == before
            await sending
            await other.close()
            await here.store.close()
            assert _published(own_redis) == before + 1

    asyncio.run(scenario())


def test_a_hint_that_cannot_be_sent_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        hints = RedisHints("redis://127.0.0.1:1", _namespace)
        hints.send()
        await hints.close()
        gc.collect()
        await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert not caplog.records


def test_a_client_that_has_connected_again_by_itself_counts_as_a_hint() -> None:
    async def scenario() -> None:
        heard = asyncio.Event()
        hints = RedisHints("redis://127.0.0.1:1", _namespace)
        hints._heard = heard.set
        hints._on_message({"type": "subscribe", "data": 1})
        async with asyncio.timeout(SECONDS_MAX):
            await heard.wait()
        await hints.close()

    asyncio.run(scenario())


async def _namespace() -> str:
    return "ns"


def _published(server: RedisServer) -> int:
    lines = [line for line in server.info("commandstats").splitlines() if line.startswith("cmdstat_publish:")]
    return int(lines[0].partition("calls=")[2].partition(",")[0]) if lines else 0


def test_hints_leave_nothing_behind(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, there):
            await here.store.log.send([mail()])
            assert await there.wakes()
            assert own_redis.command("DBSIZE") == 0

    asyncio.run(scenario())


def test_several_hints_at_once_are_one(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, there):
            before = _published(own_redis)
            hints = here.store.log._hints
            for _ in range(100):
                hints.send()
            assert await there.wakes()
            await here.store.close()
            assert _published(own_redis) == before + 1

    asyncio.run(scenario())


def test_one_who_closes_has_said_everything(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, there):
            await here.store.log.send([mail()])
            await here.store.close()
            assert await there.wakes()

    asyncio.run(scenario())


def test_a_process_without_redis_is_heard_too(own_redis: RedisServer) -> None:
    """Such as a command of a user who has not set it."""

    async def scenario() -> None:
        async with two(own_redis, sender=None) as (here, there):
            await here.store.log.send([mail()])
            async with asyncio.timeout(SECONDS_MAX):
                while not await changed(there.store):
                    await there.store.hosts.beat(HERE)

    asyncio.run(scenario())


def test_who_does_not_want_to_hear_subscribes_to_nothing(own_redis: RedisServer) -> None:
    """Such as a command that sends and ends."""

    async def scenario() -> None:
        async with two(own_redis) as (_here, there):
            sender = PostgresStore(servers.database("redis_hints"), redis=own_redis.url)
            await sender.open()
            await sender.log.send([mail()])
            await sender.close()
            assert await there.wakes()
            channels = own_redis.command("PUBSUB", "CHANNELS")
            assert isinstance(channels, list)
            (channel,) = channels
            assert channel.startswith("weft:")
            assert channel.endswith(":wake")
            assert own_redis.command("PUBSUB", "NUMSUB", channel) == [channel, 2]

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_while_redis_is_away_every_poll_counts(own_redis: RedisServer, how: str) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, there):
            own_redis.kill() if how == "killed" else own_redis.freeze()
            await here.store.log.send([mail()])  # no error, and no waiting
            await there.hears_is(False)
            assert await changed(there.store)
            assert await changed(there.store)

            own_redis.start() if how == "killed" else own_redis.thaw()
            there.heard.clear()
            # Whoever was disconnected acts as if it had heard one.
            assert await there.wakes()
            await there.settle()
            await here.store.log.send([mail("m2")])
            assert await there.wakes()

    asyncio.run(scenario())


def test_an_emptied_server_goes_on(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (here, there):
            own_redis.flush()
            await here.store.log.send([mail()])
            assert await there.wakes()

    asyncio.run(scenario())


def test_a_connection_that_is_cut_counts_as_a_hint(own_redis: RedisServer) -> None:
    async def scenario() -> None:
        async with two(own_redis) as (_here, there):
            own_redis.command("CLIENT", "KILL", "TYPE", "pubsub")
            assert await there.wakes()

    asyncio.run(scenario())


def test_a_store_opens_and_closes_while_redis_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        process = Process(servers.database("redis_hints"), "redis://127.0.0.1:1")
        await process.store.open()
        await process.store.log.send([mail("m3", "nobody")])
        async with asyncio.timeout(SECONDS_MAX):
            while not caplog.records:
                await asyncio.sleep(0.01)
        assert await changed(process.store)
        assert await changed(process.store)
        await process.store.close()

    with caplog.at_level("INFO", "weft"):
        asyncio.run(scenario())
    (said,) = [record.getMessage() for record in caplog.records if record.name == "weft"]
    assert "polling" in said
