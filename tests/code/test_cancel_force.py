"""A run whose code swallows cancellation is ended without asking the code; what it did is undone."""

from __future__ import annotations

import asyncio

import pytest

import weft
from tests.code.desk import Desk
from weft.testing import World

GRAPH = {
    "weft": "graph/1",
    "name": "graph",
    "nodes": {"book": {"step": "book", "next": "travel"}, "travel": {"step": "travel", "with": {"ticket": "t"}}},
}


class Shop:
    """Books things, takes them back, and has code that will not stop."""

    def __init__(self) -> None:
        self.app = app = weft.App("memory://")
        self.ledger: list[str] = []
        self.swallowed = 0

        @app.step
        async def book() -> str:
            self.ledger.append("book")
            return "ticket"

        @book.undo
        async def unbook(result: str) -> None:
            self.ledger.append(f"unbook {result}")

        @app.workflow
        async def stubborn(ctx: weft.Context) -> None:
            await book()
            while True:
                try:
                    await ctx.sleep("1h")
                except asyncio.CancelledError:
                    self.swallowed += 1

        @app.workflow
        async def parent(ctx: weft.Context) -> None:
            await ctx.call(stubborn(), id="child")

        self.stubborn = stubborn
        self.parent = parent


def test_a_plain_cancel_of_a_cancelling_run_changes_nothing_and_force_ends_it() -> None:
    shop = Shop()
    desk = Desk(shop.app)

    async def scene() -> list[str]:
        handle = await shop.app.start(shop.stubborn(), id="run")
        await asyncio.sleep(1)
        await handle.cancel("enough")
        await asyncio.sleep(5)
        early = (await handle.explain()).hint
        before = len(desk.log())
        await handle.cancel("again")
        await asyncio.sleep(1)
        assert len(desk.log()) == before
        await asyncio.sleep(5)
        late = (await handle.explain()).hint
        assert await handle.status() == "cancelling"
        await handle.cancel(force=True)
        with pytest.raises(weft.RunCancelled) as cancelled:
            await handle.result()
        return [early, late, cancelled.value.reason]

    early, late, reason = desk.play(scene)

    assert early == ""
    assert late.endswith("weft cancel run --force")
    assert reason == "enough", "the first reason stays"
    assert shop.ledger == ["book", "unbook ticket"]
    assert shop.swallowed == 1


@pytest.mark.parametrize("before", ["running", "paused"])
def test_force_needs_no_cancel_before(before: str) -> None:
    shop = Shop()
    desk = Desk(shop.app)

    async def scene() -> str:
        handle = await shop.app.start(shop.stubborn(), id="run")
        await asyncio.sleep(1)
        if before == "paused":
            await handle.pause()
        await handle.cancel("now", force=True)
        with pytest.raises(weft.RunCancelled) as cancelled:
            await handle.result()
        return cancelled.value.reason

    assert desk.play(scene) == "now"
    assert shop.ledger == ["book", "unbook ticket"]


def test_force_is_for_the_named_run_and_its_children_are_asked() -> None:
    shop = Shop()
    desk = Desk(shop.app)

    async def scene() -> list[str]:
        handle = await shop.app.start(shop.parent(), id="run")
        await asyncio.sleep(1)
        await handle.cancel("enough", force=True)
        await asyncio.sleep(5)
        standing = [await handle.status(), await shop.app.get("child").status()]
        await shop.app.get("child").cancel(force=True)
        with pytest.raises(weft.RunCancelled):
            await handle.result()
        return [*standing, await shop.app.get("child").status()]

    assert desk.play(scene) == ["rolling_back", "cancelling", "cancelled"]


def test_a_forced_end_survives_a_crash_at_every_write() -> None:
    def scene(world: World) -> None:
        run = world.start(shop.stubborn(), id="run")
        world.advance("1s")
        run.cancel("enough")
        world.advance("1s")
        run.cancel("enough", force=True)
        world.advance("1m")
        assert run.status == "cancelled"

    shop = Shop()
    world = World(shop.app)
    scene(world)
    writes = len(world.writes)
    world.close()
    for n in range(writes):
        for when in ("before", "after"):
            shop = Shop()
            world = World(shop.app)
            world.crash_at_write((n, when))  # type: ignore[arg-type]
            scene(world)
            assert shop.ledger.count("unbook ticket") >= 1
            world.close()


@pytest.mark.parametrize("style", ["graph", "goal"])
def test_graphs_and_goals_take_it_too(style: str) -> None:
    app = weft.App("memory://")
    ledger: list[str] = []

    @app.step(gives="ticket")
    async def book() -> str:
        ledger.append("book")
        return "ticket"

    @book.undo
    async def unbook(result: str) -> None:
        ledger.append("unbook")

    @app.step(gives="trip")
    async def travel(ticket: str) -> str:
        await asyncio.sleep(3600)
        return "seen"

    app.graph(GRAPH)
    app.goal("goal", travel)

    async def scene() -> str:
        handle = await app.start(style, {}, id="run")
        await asyncio.sleep(1)
        await handle.cancel("enough", force=True)
        with pytest.raises(weft.RunCancelled):
            await handle.result()
        return await handle.status()

    assert Desk(app).play(scene) == "cancelled"
    assert ledger == ["book", "unbook"]


def test_a_run_that_blocks_its_hosts_is_ended_before_its_code_runs_again() -> None:
    """Its host stands still, so the command waits in the inbox: whoever takes the run over reads that first."""
    app = weft.App("memory://")
    entered: list[bool] = []

    @app.workflow
    async def blocks(ctx: weft.Context) -> None:
        entered.append(True)
        await ctx.receive("never")  # stands for `while True: pass`

    desk = Desk(app)
    elsewhere = weft.App("memory://")

    async def block() -> None:
        await app.start(blocks(), id="run")
        while not entered:
            await asyncio.sleep(0.001)

    async def force() -> None:
        await elsewhere.get("run").cancel(force=True)

    async def look() -> str:
        with pytest.raises(weft.RunCancelled):
            await app.get("run").result(timeout="1h")
        return await app.get("run").status()

    desk.play(block, crash=True)
    desk.play(force, app=elsewhere)
    entered.clear()

    assert desk.play(look) == "cancelled"
    assert entered == []
