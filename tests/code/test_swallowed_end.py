"""Code that swallows everything, also its end, is left alone: no host and no check waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from weft.testing import World

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

REQUESTS = ["receive", "step", "now", "map", "spawn"]


class Swallower:
    """An app whose second version asks again and again, and swallows everything. It fails after many rounds."""

    def __init__(self, request: str) -> None:
        self.app = app = weft.App("memory://")
        self.rounds = 0

        @app.step
        async def work() -> int:
            return 1

        @app.workflow
        async def other(ctx: weft.Context) -> None:
            await ctx.receive("never")

        async def ask(ctx: weft.Context) -> Any:
            match request:
                case "receive":
                    return await ctx.receive("y")
                case "step":
                    return await work()
                case "now":
                    return await ctx.now()
                case "map":
                    return await ctx.map("m", lambda _: work(), [])
                case "spawn":
                    return await ctx.spawn(other())

        @app.workflow(name="flow", version="2")
        async def second(ctx: weft.Context) -> None:
            while self.rounds < 500:
                try:
                    await ctx.receive("first")
                    await ask(ctx)
                except BaseException:
                    self.rounds += 1
                    while self.rounds < 500:
                        try:
                            await ask(ctx)
                        except BaseException:
                            self.rounds += 1

        @app.workflow(name="flow", version="1")
        async def first(ctx: weft.Context) -> None:
            await ctx.receive("first")


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_dry_run_leaves_code_that_swallows_its_end(request_: str) -> None:
    shop = Swallower(request_)
    world = World(shop.app)
    try:
        run = world.start("flow", id="run")
        world.settle()
        plan = world.perform(lambda: shop.app.get(run.id).patch(to="2", dry_run=True))
        assert not plan.refusals
    finally:
        world.close()
    assert 0 < shop.rounds < 20


def test_a_host_leaves_code_that_swallows_its_end() -> None:
    shop = Swallower("receive")

    async def scene() -> None:
        await shop.app.start("flow@2", id="run")
        await asyncio.sleep(60)
        assert not desk.host.runs.actors

    desk = Desk(shop.app)
    desk.play(scene)
    assert 0 < shop.rounds < 20
