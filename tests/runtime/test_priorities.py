"""Priorities: of steps that wait for a slot, those of runs with a higher priority come first."""

import asyncio

import msgspec

import weft
from tests.code.desk import CALM, Desk


def test_steps_of_runs_with_a_higher_priority_get_the_free_slot_first_and_children_inherit_it() -> None:
    app = weft.App("memory://")
    began: list[str] = []

    @app.step
    async def work(name: str) -> None:
        began.append(name)
        await asyncio.sleep(1)

    @app.workflow
    async def inner(name: str) -> None:
        await work(name)

    @app.workflow
    async def outer(name: str) -> None:
        await inner(name)

    async def scene() -> None:
        starts = [("first", 0), ("plain", 0), ("low", -1), ("high", 5), ("second", 0)]
        runs = [await app.start(inner(name), priority=priority) for name, priority in starts]
        runs.append(await app.start(outer("child"), priority=7))
        for run in runs:
            await run.result()

    Desk(app, settings=msgspec.structs.replace(CALM, slots=1)).play(scene)

    assert began == ["first", "child", "high", "plain", "second", "low"]
