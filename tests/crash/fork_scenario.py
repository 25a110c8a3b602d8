"""A fork under fire: a run that ends, and a fork of it with a result set, with a ledger outside the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import BIG, Ledger

STATUSES: dict[str, str] = {}


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step
    async def collect(n: int) -> str:
        ledger.write("effect", "collect", weft.task().key)
        return BIG + str(n)

    @app.step
    async def measure(text: str) -> int:
        ledger.write("effect", "measure", weft.task().key)
        return len(text)

    @app.workflow
    async def child(n: int) -> int:
        return await measure(await collect(n))

    @app.workflow
    async def job(ctx: weft.Context, n: int) -> int:
        first = await measure(await collect(n))
        return first + await ctx.call(child(n)) + await measure("end")

    return app


async def play(app: weft.App, folder: Path) -> None:
    """Let the original end, fork it once, and let the fork end."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        original = await app.start("job", {"n": 1}, id="main")
        whole = await original.result(timeout=100)
        fork = await original.fork(before="child", set={"measure": 1}, id="fork", key="once")
        ledger.write("acked", "fork")
        ledger.write("result", str(whole - await fork.result(timeout=100) == len(BIG)))


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
