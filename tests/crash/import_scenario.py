"""An import under fire: a run with a child is read from a bundle, and a fork of it ends here, with a ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from tests.crash.hosting import hosting, until_answered, url_of
from tests.crash.scenario import BIG, Ledger

STATUSES = {"main": "imported", "main.child": "imported"}
BUNDLE = "bundle.zip"
GRAPH = {"name": "last", "nodes": {"end": {"pass": True}}}


def build(folder: Path, url: str) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url)
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
        await ctx.call("last", {})
        return first + await ctx.call(child(n), id="main.child") + await measure("end")

    app.graph(GRAPH)
    return app


async def play(folder: Path) -> None:
    """Export a run that has ended in another store, import it here, fork it before its child, and let the fork end."""
    home, here = build(folder, f"sqlite:///{folder}/home.db"), build(folder, url_of(folder))
    ledger = Ledger(folder / "ledger.txt")
    if not (folder / BUNDLE).exists():
        async with hosting(home):
            run = await home.start("job", {"n": 1}, id="main")
            ledger.write("whole", str(await run.result(timeout=100)))
            await home.export("main", folder / f"{BUNDLE}.part", tree=True)
        (folder / f"{BUNDLE}.part").replace(folder / BUNDLE)
    async with hosting(here):
        for _ in range(2):
            await until_answered(lambda: here.import_(folder / BUNDLE))
        ledger.write("acked", "imported")
        fork = await here.get("main").fork(before="child", id="fork", key="once")
        ledger.write("fork", str(await fork.result(timeout=100)))


def run(folder: Path) -> None:
    asyncio.run(play(folder))
