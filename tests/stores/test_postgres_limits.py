"""Limits per key on Postgres: rates are counted by the clock of the server, and rows are found one by one."""

import asyncio
import time
from collections.abc import Sequence

import asyncpg  # type: ignore[import-untyped]

from tests import servers
from tests.contract.kit import HERE, RUN, THERE, new
from tests.contract.test_tasks import task
from weft.core.ids import Millis
from weft.ports.tasks import KeyLimit, TaskOffer
from weft.stores.postgres import PostgresStore
from weft.stores.postgres.tasks import exchange_arguments

HOLD = "SELECT pg_advisory_lock(weft.key_lock('step/charge', 'ann'))"
LET_GO = "SELECT pg_advisory_unlock_all()"
WAITS = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
READ = "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index WHERE indrelid = 'weft.tasks'::regclass"
UNTIL = "SELECT array_agg(until) FROM weft.key_starts"


def test_a_start_counts_from_when_it_began_and_not_from_when_it_began_to_wait_for_its_key() -> None:
    url = servers.database("limits")

    async def scenario() -> None:
        store, other = PostgresStore(url), await asyncpg.connect(url)
        await store.open()
        await store.log.create([new(RUN)])
        await store.tasks.declare({"step/charge": KeyLimit(rate=1, per_ms=1_000)})
        await other.execute(HOLD)

        offer = task(1, limit="step/charge", key="ann")
        now = Millis(time.time_ns() // 1_000_000)
        asked = asyncio.ensure_future(store.tasks.exchange(HERE, [], [offer], now=now, most=1))
        while not await other.fetchval(WAITS):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        held_until = await other.fetchval("SELECT extract(epoch FROM clock_timestamp()) * 1000")
        await other.execute(LET_GO)

        assert (await asked).taken == [offer]
        (until,) = await other.fetchval(UNTIL)
        assert until >= held_until + 1_000
        await other.close()
        await store.close()

    asyncio.run(scenario())


def test_a_rate_holds_for_a_host_whose_clock_is_hours_off_and_it_learns_the_turn_by_its_clock() -> None:
    url = servers.database("limits_clock")

    async def scenario() -> None:
        store, hour = PostgresStore(url), 3_600_000
        await store.open()
        await store.log.create([new(RUN)])
        await store.tasks.declare({"step/charge": KeyLimit(rate=1, per_ms=hour)})
        offers = [task(number, limit="step/charge", key="ann") for number in (1, 2)]
        now = time.time_ns() // 1_000_000
        assert (await store.tasks.exchange(HERE, [], offers, now=Millis(now), most=2)).taken == offers[:1]

        for off in (2 * hour, -2 * hour):
            there = Millis(now + off)
            assert await store.tasks.take(THERE, queues=None, steps=["charge"], now=there, limit=2) == []
            turn = await store.tasks.next_turn(there)
            assert turn is not None
            assert there < turn <= there + hour + 60_000
        await store.close()

    asyncio.run(scenario())


def test_an_exchange_reads_its_own_rows_and_not_those_of_all_tasks_of_the_host() -> None:
    url, count = servers.database("limits_lookups"), 100

    async def scenario() -> None:
        store = PostgresStore(url)
        await store.open()
        uids = [f"{RUN}-{number}" for number in range(2 * count)]
        offers = [task(1, uid, limit="step/charge", key=uid) for uid in uids]
        await store.log.create([new(uids[0])])
        await store.tasks.declare({"step/charge": KeyLimit(concurrency=1)})
        other = await asyncpg.connect(url, server_settings={"search_path": "weft"})

        async def exchange(finished: Sequence[TaskOffer], offered: Sequence[TaskOffer]) -> int:
            values = exchange_arguments(HERE, finished, offered, Millis(0), count)
            marks = ", ".join(f"${n}" for n in range(1, len(values) + 1))
            return len(await other.fetchval(f"SELECT (exchange_tasks({marks})).taken", *values))

        assert await exchange([], offers[:1]) == 1  # its plans are those for small tables
        assert await exchange(offers[:1], []) == 0
        await store.log.create([new(uid) for uid in uids[1:]])
        async with other.transaction():
            assert await exchange([], offers[:count]) == count
            before = await other.fetchval(READ)
            assert await exchange(offers[:count], offers[count:]) == count
            assert await other.fetchval(READ) - before < 10 * count
        await other.close()
        await store.close()

    asyncio.run(scenario())


def test_the_taken_tasks_of_a_key_are_found_by_their_index_also_if_the_table_was_analysed_as_empty() -> None:
    url, count = servers.database("limits_empty"), 50

    async def scenario() -> None:
        store = PostgresStore(url)
        await store.open()
        uids = [f"{RUN}-{number}" for number in range(2 * count)]
        offers = [task(1, uid, limit="step/charge", key=uid) for uid in uids]
        await store.log.create([new(uid) for uid in uids])
        await store.tasks.declare({"step/charge": KeyLimit(concurrency=1)})
        await store.tasks.exchange(HERE, [], offers[:count], now=Millis(0), most=count)
        await store.tasks.exchange(HERE, offers[:count], [], now=Millis(0), most=0)
        other = await asyncpg.connect(url, server_settings={"search_path": "weft"})
        await other.execute("ANALYZE tasks")

        async def offer(offered: Sequence[TaskOffer], most: int) -> int:
            values = exchange_arguments(HERE, [], offered, Millis(0), most)
            marks = ", ".join(f"${n}" for n in range(1, len(values) + 1))
            return len(await other.fetchval(f"SELECT (exchange_tasks({marks})).taken", *values))

        async with other.transaction():
            assert await offer(offers[:count], count) == count
            before = await other.fetchval(READ)
            assert await offer(offers[count:], 0) == 0
            assert len(await other.fetch("SELECT take_tasks($1, NULL, NULL, 0, $2)", THERE, count)) == count
            assert await other.fetchval(READ) - before < 20 * count
        await other.close()
        await store.close()

    asyncio.run(scenario())
