"""A heartbeat of a step moves its timeout, and tells a body that nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import weft
from weft.errors import UsageError
from weft.steps.task import Task
from weft.testing import World


def play(app: weft.App, scene: Any) -> Any:
    async def main() -> Any:
        async with app:
            return await scene()

    return asyncio.run(main())


@pytest.mark.parametrize("beats", [True, False])
def test_the_timeout_counts_from_the_last_heartbeat(beats: bool) -> None:
    app = weft.App("memory://")

    @app.step(retries=0, timeout="15m")
    async def long() -> str:
        for _ in range(4):
            await asyncio.sleep(600)
            if beats:
                assert weft.task().heartbeat()
        return "done"

    @app.workflow
    async def flow() -> str:
        try:
            return await long()
        except weft.StepFailed:
            return "timed out"

    assert World(app).run(flow()) == ("done" if beats else "timed out")


def test_a_heartbeat_from_a_thread_moves_the_timeout() -> None:
    app = weft.App("memory://")
    begun, looked, beaten, seen = (threading.Event() for _ in range(4))

    @app.step(retries=0, timeout="1h")
    def long() -> str:
        begun.set()
        looked.wait()
        weft.task().heartbeat()
        beaten.set()
        seen.wait()
        return "done"

    @app.workflow
    async def flow() -> str:
        return await long()

    async def scene() -> Any:
        run = await app.start(flow())
        await asyncio.to_thread(begun.wait)
        work = app.service.work
        assert work is not None
        ((flight,),) = (flights.values() for flights in work._worker.flights.values())
        assert flight.timer is not None
        before = flight.timer.when()
        looked.set()
        await asyncio.to_thread(beaten.wait)
        moved = flight.timer.when() > before
        seen.set()
        return await run.result(), moved

    assert play(app, scene) == ("done", True)


def test_a_body_that_nobody_waits_for_learns_it_from_its_heartbeat() -> None:
    app = weft.App("memory://")
    begun, learned = threading.Event(), threading.Event()

    @app.step(retries=0)
    def endless() -> None:
        begun.set()
        while weft.task().heartbeat():
            pass
        learned.set()

    @app.workflow
    async def flow() -> None:
        await endless()

    async def scene() -> str:
        run = await app.start(flow())
        await asyncio.to_thread(begun.wait)
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()
        await asyncio.to_thread(learned.wait)
        return await run.status()

    assert play(app, scene) == "cancelled"


def test_a_heartbeat_from_another_process_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot send heartbeats"):
        Task(key="k", attempt=1, run_id="r", step="s").heartbeat()
