"""``python -m tests.chaos.limited_host URL FOLDER``: a host whose limited steps write down when they begin and end."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import weft


def limited_app(url: str, folder: Path, *, seconds: float) -> weft.App:
    """An app whose step writes a line when it begins and one when it ends, with the process that performed it."""
    app = weft.App(url)

    def note(what: str, key: str, n: int) -> None:
        with (folder / f"{os.getpid()}.txt").open("a") as lines:
            lines.write(f"{time.monotonic()} {what} {key} {n} {os.getpid()}\n")

    @app.step(limit=weft.Limit(concurrency=2, key="customer"))
    async def call(customer: str, n: int) -> int:
        note("began", customer, n)
        await asyncio.sleep(seconds)
        note("ended", customer, n)
        return n

    @app.workflow
    async def many(ctx: weft.Context, customer: str, count: int) -> int:
        return sum(await asyncio.gather(*(call(customer, n) for n in range(count))))

    return app


async def host(url: str, folder: Path) -> None:
    async with limited_app(url, folder, seconds=3600) as app:
        await app.start("many", {"customer": "ann", "count": 6}, id="many")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(host(sys.argv[1], Path(sys.argv[2])))
