"""Starts of goals: what is refused makes no run, and a start without a plan is planned where the goal is known."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import Raw

import weft
from weft.core.commands import StartRun
from weft.runtime.start_support import StartOptions
from weft.testing import World


def shop(url: str = "memory://") -> weft.App:
    app = weft.App(url)

    @app.step(gives="total")
    async def price(n: int) -> int:
        return n * 2

    app.goal("pricing", price)
    return app


@pytest.mark.parametrize("given", [{}, {"n": "two"}])
def test_a_start_that_is_refused_makes_no_run(given: dict[str, object]) -> None:
    app = shop()
    world = World(app)

    with pytest.raises(weft.UsageError):
        world.start(app.registered.runnable_named("pricing"), given, id="p-1")

    async def listed() -> list[str]:
        return [handle.id async for handle in app.list()]

    assert world.perform(listed) == []
    assert world.run(app.registered.runnable_named("pricing"), {"n": 2}, id="p-1")["total"] == 4


def test_a_start_from_elsewhere_is_planned_by_its_host(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def play() -> list[object]:
        async with weft.Client(url) as client:
            service = client.service
            await service.create(_start("good", b'{"n": 3}'), StartOptions(chosen=True))
            await service.create(_start("bad", b"{}"), StartOptions(chosen=True))
        app = shop(url)
        async with app:
            good = await app.get("good", app.registered.runnable_named("pricing")).result(timeout=120)
            with pytest.raises(weft.RunFailed, match="no step gives n"):
                await app.get("bad").result(timeout=120)
            return [good["total"], await app.get("bad").status()]

    assert asyncio.run(play()) == [6, "failed"]


def _start(run_id: str, given: bytes) -> StartRun:
    return StartRun(run_id=run_id, workflow="pricing", style="goal", input=Raw(given))


def test_code_gets_the_facts_of_goals_that_it_reaches() -> None:
    app = shop()

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> int:
        return (await ctx.achieve("price", given={"n": n}))["total"]  # type: ignore[no-any-return]

    assert World(app).run(order(3), id="o-1") == 6
