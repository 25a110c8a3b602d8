"""A claim in Postgres that began before a WAL existed does not take the run that was attached to it meanwhile."""

import asyncio

import asyncpg  # type: ignore[import-untyped]

from tests import servers
from tests.contract.kit import HERE, RUN, THERE, append, new
from weft.core.ids import Epoch, RunUid
from weft.stores.postgres import PostgresStore

_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def test_a_claim_that_waited_for_an_attach_sees_the_new_wal_as_open() -> None:
    """It judges the new row with what it saw of other tables when it began: there, the WAL does not exist yet."""
    url = servers.database("wals")

    async def scenario() -> tuple[int, int | None, int]:
        store, other = PostgresStore(url, durability="fast"), PostgresStore(url, durability="fast")
        for one in (store, other):
            await one.open()
        await store.log.commit([append(count=0, create=new())], HERE)
        holder, watcher = await asyncpg.connect(url), await asyncpg.connect(url)
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("SELECT 1 FROM weft.runs FOR UPDATE")

        claim = asyncio.create_task(other.log.claim([RUN], THERE, expected={RUN: Epoch(1)}))
        while not await watcher.fetchval(_WAITS):
            await asyncio.sleep(0)
        wal = await store.wals.open(HERE, "redis")
        await holder.execute("UPDATE weft.runs SET wal = $1", wal)
        await transaction.commit()

        claimed = len(await claim)
        row = await other.directory.row(RunUid(RUN))
        assert row is not None
        for one in (store, other, holder, watcher):
            await one.close()
        return claimed, row.wal, row.epoch

    servers.empty(url)
    claimed, wal, epoch = servers.run(scenario())

    assert (claimed, epoch) == (0, 1)
    assert wal is not None
