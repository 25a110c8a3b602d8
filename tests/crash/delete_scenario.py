"""Deletion under fire: one tree is deleted by hand, others by a policy, and one is held back, with a ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from tests.crash.hosting import hosting, until_answered, url_of
from tests.crash.scenario import BIG, Ledger
from weft.core.ids import Millis, RunId
from weft.runtime.clock import SystemClock
from weft.runtime.deletion import DeletionService
from weft.runtime.retention import Collector, GcOrder
from weft.runtime.retention_policy import read_policy

KEPT = "kept"
BY_HAND = "by-hand"
OLD = ["old-0", "old-1"]
STATUSES: dict[str, str] = {}
WEEK_MS = 7 * 24 * 3600 * 1000


class NextWeek(SystemClock):
    """The clock of the pass. In a week, everything here is old."""

    def now_ms(self) -> Millis:
        return Millis(super().now_ms() + WEEK_MS)


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step
    async def collect(name: str) -> str:
        ledger.write("effect", "collect", weft.task().key)
        return BIG + name

    @app.workflow
    async def child(name: str) -> int:
        return len(await collect(name))

    @app.workflow
    async def job(ctx: weft.Context, name: str) -> int:
        return len(await collect("shared")) + await ctx.call(child(name))

    return app


async def play(app: weft.App, folder: Path) -> None:
    """Let all runs end, delete one tree, delete all that is old, and start a run under an id that is free again."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        if ["acked", "ended"] not in ledger.lines():
            for run in (KEPT, BY_HAND, *OLD):
                await (await app.start("job", {"name": run}, id=run, existing="attach")).result(timeout=100)
            await until_answered(lambda: app.get(KEPT).keep("a dispute"))
            ledger.write("acked", "ended")
        deletion = DeletionService(app.service)
        await until_answered(lambda: deletion.delete(RunId(BY_HAND), "asked for", by="ann", key="once"))
        ledger.write("acked", "deleted")
        order = GcOrder(policy=read_policy({"completed": "1d"}), by="bob", reason="old")
        if ["acked", "collected"] not in ledger.lines():  # it would also delete the run that comes next
            await until_answered(lambda: Collector(app.service.store, NextWeek()).collect(order))
            ledger.write("acked", "collected")
        again = await app.start("child", {"name": "again"}, id=OLD[0], existing="attach")
        ledger.write("result", str(await again.result(timeout=100) == len(BIG) + 5))


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
