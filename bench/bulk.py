"""Bulks of 1,000 runs on SQLite: runs per second for each verb, from the start of the bulk to its end.

``python -m bench.bulk [RUNS]``. The runs wait for a message; for ``retry`` they have failed, and are performed again.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time

import weft

RUNS = 1_000


def new_app(url: str) -> weft.App:
    app = weft.App(url)

    @app.step(retries=0)
    async def charge(n: int) -> int:
        raise weft.Critical("declined")

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> int:
        await ctx.receive("go")
        return await charge(n)

    return app


async def measure(app: weft.App, verb: str, status: str) -> None:
    began = time.perf_counter()
    bulk = await app.bulk(verb, workflow="order", status=status)
    planned = time.perf_counter()
    result = await (await bulk.apply()).result()
    ended = time.perf_counter()
    rate = result.applied / (ended - planned)
    seconds = f"dry run {planned - began:.2f} s  bulk {ended - planned:.2f} s"
    print(f"{verb:7} {result.applied:,} applied  {seconds}  {rate:,.0f}/s")


async def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        app = new_app(f"sqlite:///{folder}/weft.db")
        async with app:
            handles = [await app.start("order", {"n": n}) for n in range(runs)]
            await measure(app, "pause", "running")
            await measure(app, "resume", "paused")
            for handle in handles:
                await handle.send("go")
            while [run async for run in app.list(status="running")]:
                await asyncio.sleep(0.1)
            await measure(app, "retry", "failed")
            more = [await app.start("order", {"n": n}) for n in range(runs)]
            assert len(more) == runs
            await measure(app, "cancel", "running")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.bulk", description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=RUNS)
    asyncio.run(main(parser.parse_args().runs))
