"""The raw limit: single-row commits per second of one connection to Postgres, each on disk before the next begins."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]

from bench.measure import Meter, Sample, main, steps_of, store_url

ROW_BYTES = 300


def w1(n: int, _: Path) -> Iterable[Sample]:
    async def body() -> list[Sample]:
        connection = await asyncpg.connect(store_url())
        await connection.execute("CREATE TABLE log (seq bigserial PRIMARY KEY, body text NOT NULL)")
        row = "x" * ROW_BYTES
        insert = "INSERT INTO log (body) VALUES ($1)"
        for _ in range(50):
            await connection.execute(insert, row)
        meter = Meter()
        for _ in range(n):
            await connection.execute(insert, row)
        found = steps_of("W1", n, meter)
        await connection.close()
        return found

    return asyncio.run(body())


if __name__ == "__main__":
    main({"W1": w1})
