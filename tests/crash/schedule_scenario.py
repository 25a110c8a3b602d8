"""A schedule under fire: a clock that fires every second, and a backfill, with a ledger outside the engine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import Ledger

STATUSES: dict[str, str] = {}
BACKFILLED = 3


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step
    async def work() -> None:
        ledger.write("effect", "work", weft.task().key)

    @app.workflow
    async def job() -> None:
        await work()

    return app


async def play(app: weft.App, folder: Path) -> None:
    """Let the clock fire twice, and three runs of the past start; then pause it and let all runs end."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        schedules = app.schedules
        await schedules.add("tick", "job", every="1s", overlap="allow", catch_up="all")
        first = _begun(ledger)
        if ["acked", "backfill"] not in ledger.lines():
            await schedules.backfill(
                "tick", first - timedelta(seconds=20 + BACKFILLED - 1), first - timedelta(seconds=20)
            )
            ledger.write("acked", "backfill")
        while True:
            found = await schedules.get("tick")
            if found.fired >= BACKFILLED + 2 and not found.backfills:
                break
            await asyncio.sleep(0.01)
        if found.status != "paused":
            await schedules.pause("tick")
        while (await schedules.get("tick")).open_runs:
            await asyncio.sleep(0.01)
        ledger.write("result", "ended")


def _begun(ledger: Ledger) -> datetime:
    """When the first of all processes began, in whole seconds."""
    for line in ledger.lines():
        if line[0] == "begun":
            return datetime.fromtimestamp(int(line[1]), UTC)
    now = datetime.now(UTC).replace(microsecond=0)
    ledger.write("begun", str(int(now.timestamp())))
    return now


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
