"""A bulk under fire: runs that have failed are retried in one go, with a ledger outside the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import Ledger

STATUSES: dict[str, str] = {}
RUNS = [f"order-{n}" for n in range(5)]


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step(retries=0)
    async def charge() -> None:
        ledger.write("effect", "charge", weft.task().key)
        if ["mended", "charge"] not in ledger.lines():
            raise weft.Critical("declined")

    @app.workflow
    async def order() -> None:
        await charge()

    return app


async def play(app: weft.App, folder: Path) -> None:
    """Let five runs fail, mend the step, retry all of them as one bulk, and let them end."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        for run in RUNS:
            await app.start("order", {}, id=run)
        await _until(app, {"failed", "completed"})
        if ["mended", "charge"] not in ledger.lines():
            ledger.write("mended", "charge")
        bulk = await app.bulk("retry", *RUNS)
        result = await (await bulk.apply(key="once")).result()
        ledger.write("applied", str(result.applied))
        await _until(app, {"completed"})
        ledger.write("result", "ended")


async def _until(app: weft.App, statuses: set[str]) -> None:
    while not {await app.get(run).status() for run in RUNS} <= statuses:
        await asyncio.sleep(0.01)


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
