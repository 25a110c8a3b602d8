"""Limits per key on Postgres: rates are counted by the clock of the server, when tasks really begin."""

import asyncio
import time

import asyncpg  # type: ignore[import-untyped]

from tests import servers
from tests.contract.kit import HERE, RUN, new
from tests.contract.test_tasks import task
from weft.core.ids import Millis
from weft.ports.tasks import KeyLimit
from weft.stores.postgres import PostgresStore

HOLD = "SELECT pg_advisory_lock(weft.key_lock('step/charge', 'ann'))"
LET_GO = "SELECT pg_advisory_unlock_all()"
WAITS = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
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
