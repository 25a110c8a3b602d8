"""Hooks under fire: runs that retry, fail and complete, with a ledger outside the engine of what was delivered."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import Ledger
from weft.ports.run_query import RunQuery
from weft.runtime.hooks import WORKFLOW

STATUSES: dict[str, str] = {}
RUNS = [f"order-{n}" for n in range(4)]


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step(retries=weft.Retry(attempts=2, delay="1ms"))
    async def charge(n: int) -> None:
        if n == 0 or weft.task().attempt == 1:
            raise OSError("away")

    @app.workflow
    async def order(n: int) -> None:
        await charge(n)

    @app.on("run_failed", "step_retried")
    async def troubles(event: weft.HookEvent) -> None:
        ledger.write("effect", f"hook/troubles/{event.uid}/{event.number}", weft.task().key)

    @app.on("run_completed", where="run_id != 'order-1'")
    async def ends(event: weft.HookEvent) -> None:
        ledger.write("effect", f"hook/ends/{event.uid}/{event.number}", weft.task().key)

    return app


async def play(app: weft.App, folder: Path) -> None:
    """Start four runs, of which one fails, and wait until they and all deliveries are over."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        for n, run in enumerate(RUNS):
            await app.start("order", {"n": n}, id=run)
        while not {await app.get(run).status() for run in RUNS} <= {"failed", "completed"}:
            await asyncio.sleep(0.01)
        while [one for one in (await app.service.search(RunQuery(workflow=WORKFLOW))).rows if one.ended_at is None]:
            await asyncio.sleep(0.01)
        ledger.write("result", "ended")


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
