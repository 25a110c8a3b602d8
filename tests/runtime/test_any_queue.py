"""A host performs the steps that it has, whatever the queue; one that serves some queues leaves the others alone."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.authoring.app_catalogue import QueueCatalogue, WorkerCatalogue
from weft.ports.tasks import QueueLimits


def shop(url: str, done: list[str], who: str) -> weft.App:
    app = weft.App(url)

    @app.step
    async def paint(n: int) -> str:
        done.append(f"{who}:{n}")
        return who

    @app.workflow
    async def painting(ctx: weft.Context, n: int, queue: str) -> str:
        return await paint.options(queue=queue)(n)

    return app


def test_a_limit_on_a_queue_that_no_step_declares_holds_nobody_up(tmp_path: Path) -> None:
    done: list[str] = []
    app = shop(f"sqlite:///{tmp_path}/weft.db", done, "here")

    async def scenario() -> str:
        async with app:
            await app.service.store.tasks.limit("rare", QueueLimits(concurrency=1))
            assert app.service.local is not None
            await app.service.local._claims._shared.refresh()
            handle = await app.start("painting", {"n": 1, "queue": "rare"})
            return str(await handle.result(timeout=200))

    assert asyncio.run(scenario()) == "here"


@pytest.mark.parametrize(("queue", "who"), [("brush", "there"), ("default", "here")])
def test_the_queue_of_a_call_decides_who_performs_it(tmp_path: Path, queue: str, who: str) -> None:
    done: list[str] = []
    url = f"sqlite:///{tmp_path}/weft.db"
    here, there = shop(url, done, "here"), shop(url, done, "there")
    here.host_only(partial(QueueCatalogue, queues=["default"]))
    there.host_only(partial(WorkerCatalogue, queues=["brush"]))

    async def scenario() -> Any:
        async with here, there:
            handle = await here.start("painting", {"n": 1, "queue": queue})
            return await handle.result(timeout=200)

    assert asyncio.run(scenario()) == who
    assert done == [f"{who}:1"]
