"""Runs whose start was put off (``delay=``): a cancel ends them at once, and nothing of them is ever performed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk

GRAPH: dict[str, Any] = {"weft": "graph/1", "name": "graphed", "nodes": {"work": {"step": "work"}}}


def make() -> tuple[weft.App, list[str]]:
    app = weft.App("memory:")
    performed: list[str] = []

    @app.step(gives="worked")
    async def work() -> str:
        performed.append("worked")
        return "done"

    @app.workflow
    async def coded(ctx: weft.Context) -> str:
        return await work()

    app.graph(GRAPH)
    app.goal("wished", work)
    return app, performed


@pytest.mark.parametrize("workflow", ["coded", "graphed", "wished"])
def test_a_cancel_ends_a_run_at_once_that_was_to_start_later(workflow: str) -> None:
    app, performed = make()

    async def scene() -> tuple[str, float]:
        began = asyncio.get_running_loop().time()
        run = await app.start(workflow, {}, id="late", delay="1h")
        await asyncio.sleep(10)
        await run.cancel("no longer wanted")
        with pytest.raises(weft.RunCancelled):
            await run.result()
        return await run.status(), asyncio.get_running_loop().time() - began

    status, seconds = Desk(app).play(scene)

    assert (status, performed) == ("cancelled", [])
    assert seconds < 20


def test_a_message_does_not_bring_a_start_forward() -> None:
    app, performed = make()

    async def scene() -> list[str]:
        run = await app.start("coded", {}, id="late", delay="1h")
        await run.send("go", 1)
        await asyncio.sleep(3_000)
        before = list(performed)
        await run.result()
        return before

    assert (Desk(app).play(scene), performed) == ([], ["worked"])
