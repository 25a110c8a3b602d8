"""Results set by hand under fire: of open steps of a code and a graph run, and of a step that has failed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import BIG, Ledger
from weft.errors import Refused
from weft.runtime.by_hand import GivenResult, set_result

STATUSES: dict[str, str] = {}
PLACES = {"open": "call", "graph": "call", "failed": "refuse"}
"""The place in each run that gets a result."""
GRAPH = {
    "name": "graph",
    "nodes": {
        "call": {"step": "call", "next": "pack"},
        "pack": {"step": "pack", "with": {"text": "${nodes.call.output}"}, "save": {"state.done": "${output}"}},
    },
}


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step(retries=weft.Retry(50, delay="1ms"))
    async def call() -> str:
        """Wait for somebody who does not answer."""
        ledger.write("effect", "call", weft.task().key)
        await asyncio.sleep(3_600)
        return "never"

    @app.step(retries=weft.Retry(1))
    async def refuse() -> str:
        ledger.write("effect", "refuse", weft.task().key)
        raise ValueError("no")

    @app.step
    async def pack(text: str) -> str:
        ledger.write("effect", "pack", weft.task().key)
        return f"packed {len(text)}"

    @app.workflow(name="open")
    async def waits(ctx: weft.Context) -> str:
        return await pack(await call())

    @app.workflow(name="failed")
    async def fails(ctx: weft.Context) -> str:
        return await pack(await refuse())

    app.graph(GRAPH)
    return app


async def play(app: weft.App, folder: Path) -> None:
    """Start the runs, give each the result that it lacks, once, and let them end."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        for run, place in PLACES.items():
            await app.start(run, id=run, existing="attach")
            await _until(app.get(run), "run_failed" if run == "failed" else "task_scheduled")
            given = GivenResult(output=BIG, by="ann", reason="by phone")
            await set_result(app.service, run, place, given, key="once")
            ledger.write("acked", run)
            if await app.get(run).status() == "failed":
                await _retry(app.get(run))
            ledger.write("result", str(await app.get(run).result(timeout=100)))


async def _retry(run: weft.Handle[Any]) -> None:
    try:
        await run.retry()
    except Refused:
        assert await run.status() != "failed", "it was retried before the kill"


async def _until(run: weft.Handle[Any], kind: str) -> None:
    while kind not in [event.kind async for event in run.events()]:
        await asyncio.sleep(0.01)


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
