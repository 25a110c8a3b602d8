"""Runs on a hot store: their plain steps go to the write-ahead log, everything else to the durable store."""

from __future__ import annotations

import asyncio
from typing import Any

import weft
from tests.code.timeless import calm
from tests.hot.hot_desk import END, EVENT, HotDesk


def steps(count: int = 5) -> tuple[weft.App, Any, list[int]]:
    """A workflow of plain steps; the list is what they did."""
    app = weft.App()
    done: list[int] = []

    @app.step
    async def work(n: int) -> int:
        done.append(n)
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        total = 0
        for n in range(count):
            total += await work(n)
        return total

    return app, flow, done


def test_a_run_on_a_hot_store_ends_as_on_any_other() -> None:
    app, flow, done = steps()
    for policy in (EVENT, END):
        done.clear()
        desk = HotDesk(app, policy=policy)
        assert desk.run(flow()) == 10
        assert done == [0, 1, 2, 3, 4]
        assert desk.kinds()[-1] == "run_completed"
        plain = HotDesk(app)
        plain.disk.away = True
        assert plain.run(flow()) == 10
        assert desk.log() == plain.log()


def test_plain_steps_are_written_to_the_wal_and_not_to_the_store() -> None:
    app = weft.App()
    gate = asyncio.Event()

    @app.workflow
    async def waits(ctx: weft.Context) -> int:
        for _ in range(3):
            await hold()
        return 1

    @app.step
    async def hold() -> None:
        await gate.wait()
        if desk.hot.hot_lane.last == 2:
            await asyncio.sleep(5)

    async def scene() -> None:
        await app.start(waits(), id="run")
        await calm()
        before = len(desk.stored())
        gate.set()
        await calm()
        assert desk.hot.hot_lane.last == 2
        assert len(desk.stored()) == before

    desk = HotDesk(app, policy=END)
    desk.play(scene, crash=True)
    assert len(desk.entries()) == 2
