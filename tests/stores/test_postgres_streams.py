"""Several processes write one stream: offsets without gaps, each chunk once."""

import asyncio

from tests import servers
from tests.contract.kit import HERE, RUN, append, new
from weft.core.ids import Millis, RunUid
from weft.ports.streams import NewChunk
from weft.stores.postgres import PostgresStore


def test_writers_in_several_processes_leave_no_gap() -> None:
    async def scenario() -> None:
        url = servers.database("streams")
        stores = [PostgresStore(url, durability="fast") for _ in range(3)]
        for store in stores:
            await store.open()
        await asyncio.to_thread(servers.empty, url)
        await stores[0].log.commit([append(count=0, create=new())], HERE)

        async def write(store: PostgresStore, writer: int) -> None:
            for number in range(20):
                pieces = [
                    NewChunk(uid=RunUid(RUN), stream=stream, key=f"{writer}/{number}", body=b"1", at=Millis(number))
                    for stream in (("a", "b") if writer % 2 else ("b", "a"))
                ]
                await store.streams.write(pieces)
                # An answer that was lost: written again.
                await store.streams.write(pieces[:1])

        await asyncio.gather(*[write(store, 4 * place + n) for place, store in enumerate(stores) for n in range(4)])

        for stream in ("a", "b"):
            chunks = await stores[0].streams.read(RunUid(RUN), stream, after=0, limit=1000)
            assert [one.offset for one in chunks] == list(range(1, 12 * 20 + 1))
        assert await stores[1].streams.lengths(RunUid(RUN)) == {"a": 240, "b": 240}
        for store in stores:
            await store.close()

    asyncio.run(scenario())
