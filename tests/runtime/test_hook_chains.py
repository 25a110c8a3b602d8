"""Hooks that start runs whose events call them again: such a chain ends, and says why."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from weft.observe.dead_letters import all_dead_letters
from weft.ports.run_query import RunQuery
from weft.runtime.hooks import WORKFLOW
from weft.testing import World


def runs_of(world: World, workflow: str) -> int:
    found = world.perform(lambda: world.app.service.search(RunQuery(workflow=workflow, limit=200)))
    return len(found.rows)


def failing_app() -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.workflow
    async def doomed(ctx: weft.Context) -> None:
        raise ValueError("as always")

    return app, doomed


@pytest.mark.parametrize("form", ["awaited", "blocking"])
def test_a_hook_that_starts_a_run_which_fails_again_is_stopped_after_32_runs(form: str) -> None:
    app, doomed = failing_app()

    async def again(event: weft.HookEvent) -> None:
        await app.start(doomed())

    def again_blocking(event: weft.HookEvent) -> None:
        app.sync.start(doomed())

    app.on("run_failed", name="again")(again if form == "awaited" else again_blocking)

    async def play() -> list[Any]:
        async with app:
            with pytest.raises(weft.RunFailed):
                await (await app.start(doomed())).result()
            while not (letters := [letter async for letter in all_dead_letters(app.service)]):
                await asyncio.sleep(0.01)
            found = await app.service.search(RunQuery(workflow="doomed", limit=200))
            assert len(found.rows) == 33  # one that nobody's hook started, and 32 in its chain
            return letters

    (letter,) = asyncio.run(play())
    assert letter.letter.failure.code == "limit.hook_chain"
    assert "again" in letter.letter.failure.message
    assert "32" in letter.letter.failure.message


def test_runs_below_a_run_that_a_hook_started_belong_to_its_chain() -> None:
    app, doomed = failing_app()

    @app.workflow
    async def above(ctx: weft.Context) -> str:
        try:
            await doomed()
        except weft.RunFailed:
            return "the child failed"
        return ""

    @app.on("run_failed")
    async def again(event: weft.HookEvent) -> None:
        await app.start(above())

    world = World(app)
    assert world.run(above()) == "the child failed"
    world.settle()
    assert runs_of(world, "above") == 33


def test_a_hook_may_start_many_runs_that_do_not_call_it_again() -> None:
    app, doomed = failing_app()

    @app.workflow
    async def mended(ctx: weft.Context, run: str) -> str:
        return run

    @app.on("run_failed")
    async def mend(event: weft.HookEvent) -> None:
        await app.start(mended(event.run_id))

    world = World(app)
    for _ in range(40):
        with pytest.raises(weft.RunFailed):
            world.run(doomed())
    world.settle()
    assert runs_of(world, "mended") == 40
    assert runs_of(world, WORKFLOW) == 40
