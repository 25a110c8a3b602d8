"""Patches that wait and patches that are reviewed, under fire, with a ledger outside the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import weft
from tests.crash.hosting import hosting, url_of
from tests.crash.scenario import Ledger

STATUSES: dict[str, str] = {}
SHORTER = {
    "name": "order",
    "nodes": {"a": {"receive": "go", "next": "c"}, "c": {"receive": "on", "next": "d"}, "d": {"step": "new"}},
}
"""A document without b. It is refused while a token is there."""


def build(folder: Path) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")

    @app.step
    async def old() -> None:
        ledger.write("effect", "old", weft.task().key)

    @app.step
    async def new() -> None:
        ledger.write("effect", "new", weft.task().key)

    app.graph(
        {
            "name": "order",
            "nodes": {
                "a": {"receive": "go", "next": "b"},
                "b": {"receive": "go", "next": "c"},
                "c": {"receive": "on", "next": "d"},
                "d": {"step": "old"},
            },
        }
    )
    return app


async def play(app: weft.App, folder: Path) -> None:
    """Let one patch wait until its run has left a node, let another one be reviewed too, and withdraw a third one."""
    ledger = Ledger(folder / "ledger.txt")
    async with hosting(app):
        async with asyncio.TaskGroup() as group:
            for run, review in (("waits", ()), ("reviewed", ("bob",)), ("withdrawn", ())):
                group.create_task(_patched(app, run, review))
        ledger.write("acked", "all")


async def _patched(app: weft.App, run: str, review: tuple[str, ...]) -> None:
    handle: weft.Handle[Any] = await app.start("order", id=run)
    await handle.send("go", key="first")
    while not await _is_at_b(handle):
        await asyncio.sleep(0.002)
    plan = await handle.patch(document=SHORTER, wait="1h", review=review, by="ann", key="once")
    assert plan.asked
    if run == "withdrawn" and not await _is_over(handle):
        await handle.withdraw_patch(by="ann")
    await handle.send("go", key="second")
    while review and not await _is_over(handle):
        if (await handle.patch_requests())[0].status == "in_review":
            try:
                await handle.decide(f"patch@{plan.asked}", approved=True, by="bob", key="yes")
            except weft.AlreadyDecided:
                break
        await asyncio.sleep(0.002)
    await handle.send("on", key="third")
    await handle.result(timeout=100)


async def _is_at_b(handle: weft.Handle[Any]) -> bool:
    waits = [event.data["node"] async for event in handle.events() if event.kind == "message_awaited"]
    return "b" in waits


async def _is_over(handle: weft.Handle[Any]) -> bool:
    return (await handle.patch_requests())[0].ended is not None


def run(folder: Path) -> None:
    asyncio.run(play(build(folder), folder))
