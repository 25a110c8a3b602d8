"""Starts by rules under fire: a batch, a debounced run and a run that replaces another, with a ledger outside."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import Ledger

STATUSES: dict[str, str] = {}
ITEMS = 5


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step
    async def work() -> None:
        ledger.write("effect", "work", weft.task().key)

    @app.workflow(batch=weft.Batch(size=3, wait="50ms"))
    async def index(items: list[int]) -> None:
        await work()

    @app.workflow(debounce=weft.Debounce("50ms", at_most="200ms"))
    async def publish(n: int) -> None:
        await work()

    @app.workflow(singleton=weft.Singleton(then="replace"))
    async def sync(ctx: weft.Context, n: int) -> None:
        await work()
        await ctx.receive("go", timeout="1m")

    return app


async def play(app: weft.App, folder: Path) -> None:
    """Start everything under ids, note which run took each start, and wait until all runs have ended."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        workflows = app.registered
        runs: dict[str, weft.Handle[object]] = {}
        for n in range(ITEMS):
            for name, given in (("index", {"items": [n]}), ("publish", {"n": n}), ("sync", {"n": n})):
                if name == "sync" and n > 2:
                    continue
                run = await app.start(workflows.runnable_named(name), given, id=f"{name}-{n}")
                ledger.write("acked", name, str(n), run.id)
                runs[run.id] = run
        last = runs.pop("sync-2")
        if await last.status() not in ("completed", "failed"):
            await last.send("go", key="once")
        for run in (last, *runs.values()):
            await _ended(run)
        ledger.write("result", "ended")


async def _ended(run: weft.Handle[object]) -> None:
    try:
        await run.result()
    except weft.RunCancelled:
        assert run.id.startswith("sync")


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
