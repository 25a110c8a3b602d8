"""Who is dead, where observers come and go: what each of them saw is kept for the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped]

from tests import servers
from tests.contract.kit import HERE
from weft.core.ids import HostId
from weft.stores.postgres import PostgresStore

LEASE_MS = 5_000


@asynccontextmanager
async def listed() -> AsyncIterator[str]:
    """A database with one host that has joined and does not beat any more: its URL."""
    url = servers.database("hosts")
    async with opened(url) as store:
        await asyncio.to_thread(servers.empty, url)
        await store.hosts.join(HERE, lease_ms=LEASE_MS)
        yield url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, durability="fast")
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def _execute(url: str, text: str) -> None:
    connection = await asyncpg.connect(url, server_settings={"search_path": "weft"})
    try:
        await connection.execute(text)
    finally:
        await connection.close()


async def _seen_by_a_new_one(url: str, seconds: float) -> list[HostId]:
    """An observer comes, looks on for so long by its own clock, and is gone."""
    async with opened(url) as store:
        await store.hosts.find_dead(monotonic=1_000.0)
        return list(await store.hosts.find_dead(monotonic=1_000.0 + seconds))


def test_a_host_is_found_dead_though_no_observer_lives_for_a_lease() -> None:
    async def scene() -> None:
        async with listed() as url:
            await _execute(url, "UPDATE hosts SET beat_at = beat_at - interval '1 day'")

            found = [await _seen_by_a_new_one(url, 1.0) for _ in range(6)]

            assert found == [[], [], [], [], [HERE], [HERE]]

    asyncio.run(scene())


def test_what_the_server_s_clock_says_makes_nobody_dead() -> None:
    async def scene() -> None:
        async with listed() as url:
            await _execute(url, "UPDATE hosts SET beat_at = beat_at - interval '1 day'")

            assert await _seen_by_a_new_one(url, 0.0) == []

    asyncio.run(scene())


def test_of_a_host_that_beats_nothing_is_written_down() -> None:
    async def scene() -> None:
        async with listed() as url:
            # By the server's clock it has just beaten, however long this machine takes.
            await _execute(url, "UPDATE hosts SET beat_at = beat_at + interval '1 hour'")
            for _ in range(6):
                assert await _seen_by_a_new_one(url, 1.0) == []
            async with opened(url) as store:
                assert await store.hosts.find_dead(monotonic=0.0) == []
                assert await store.hosts.find_dead(monotonic=4.9) == []

    asyncio.run(scene())


def test_a_host_whose_session_ended_is_found_dead_before_its_lease_is_over() -> None:
    async def scene() -> None:
        async with listed() as url, opened(url) as host, opened(url) as observer:
            await host.hosts.join(HERE, lease_ms=LEASE_MS)
            heart = host.hosts.heartbeat_sender()
            await heart.beat(HERE)
            assert await observer.hosts.find_dead(monotonic=1_000.0) == []
            assert await observer.hosts.find_dead(monotonic=1_003.0) == []

            await heart.close()
            await _until_nobody_beats(url)

            assert await observer.hosts.find_dead(monotonic=1_003.5) == [HERE]
            assert await observer.hosts.list_living() == []

    asyncio.run(scene())


def test_a_host_that_opened_another_session_lives_on() -> None:
    async def scene() -> None:
        async with listed() as url, opened(url) as host, opened(url) as observer:
            await host.hosts.join(HERE, lease_ms=LEASE_MS)
            for _ in range(2):
                heart = host.hosts.heartbeat_sender()
                await heart.beat(HERE)
                assert await observer.hosts.find_dead(monotonic=1_000.0) == []
                await heart.close()
            await _until_nobody_beats(url)
            assert await observer.hosts.find_dead(monotonic=1_002.9) == []

            heart = host.hosts.heartbeat_sender()
            await heart.beat(HERE)

            assert await observer.hosts.find_dead(monotonic=1_003.0) == []
            assert await observer.hosts.find_dead(monotonic=1_007.9) == []
            await heart.close()

    asyncio.run(scene())


async def _until_nobody_beats(url: str) -> None:
    connection = await asyncpg.connect(url, server_settings={"search_path": "weft"})
    try:
        while await connection.fetchval("SELECT count(*) FROM pg_stat_activity a JOIN hosts h ON a.pid = h.session"):
            await asyncio.sleep(0.01)
    finally:
        await connection.close()
