"""What the losers of a race did is undone as soon as the race is decided, before the run completes."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.shop import Shop, taken_back
from weft.core import events as e
from weft.testing import World


def racing(shop: Shop, *, then: str = "") -> Any:
    """``slow`` books two things and loses."""

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def slow() -> str:
            await shop.book("hotel")
            await shop.book("train")
            await ctx.sleep("1h")
            return "slow"

        async def quick() -> str:
            await shop.book("flight")
            await ctx.sleep("1s")
            return "quick"

        winner = await ctx.race("first", {"slow": slow(), "quick": quick()})
        if then:
            await shop.book(then)
        return winner.name

    return flow


@pytest.mark.parametrize("then", ["", "taxi"])
def test_what_a_loser_did_is_undone_newest_first_before_the_run_completes(then: str) -> None:
    shop = Shop()
    desk = Desk(shop.app)

    assert desk.run(racing(shop, then=then)()) == "quick"

    assert desk.status() == "completed"
    assert [line for line in shop.ledger if line[0] == "-"] == taken_back("train", "hotel")
    assert desk.kinds()[-1] == "run_completed"


def test_a_run_waits_for_a_loser_that_cannot_be_interrupted_and_undoes_it() -> None:
    app = weft.App("memory://")
    ledger: list[str] = []

    @app.step(retries=0)
    async def book() -> str:
        await asyncio.sleep(10)
        ledger.append("+")
        return "ticket"

    @book.undo
    async def unbook(result: str) -> None:
        ledger.append(f"-{result}")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def quick() -> str:
            await ctx.sleep("1s")
            return "quick"

        return (await ctx.race("first", {"book": book(), "quick": quick()})).name

    desk = Desk(app)
    assert desk.run(flow()) == "quick"
    assert ledger == ["+", "-ticket"]
    assert [kind for kind in desk.kinds() if kind != "task_lost"][-4:] == [
        "task_succeeded",
        "undo_scheduled",
        "task_succeeded",
        "run_completed",
    ]


def test_a_loser_that_may_run_once_is_waited_for_before_the_run_completes() -> None:
    app = weft.App("memory://")
    ledger: list[str] = []

    @app.step(effect="irreversible")
    async def wire() -> str:
        await asyncio.sleep(10)
        ledger.append("wired")
        return "sent"

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def quick() -> str:
            await ctx.sleep("1s")
            return "quick"

        return (await ctx.race("first", {"wire": wire(), "quick": quick()})).name

    assert Desk(app).run(flow()) == "quick"
    assert ledger == ["wired"]


def test_the_undo_of_a_loser_survives_a_crash_while_the_run_waits_for_it() -> None:
    for crash in ("+hotel", "-train", "-hotel"):
        shop = Shop()
        flow = racing(shop)
        world = World(shop.app)
        step = "book" if crash[0] == "+" else shop.undo_name
        world.crash(at=step, when="after")
        run = world.start(flow(), id="r-1")

        assert run.result() == "quick"
        assert [line for line in dict.fromkeys(shop.ledger) if line[0] == "-"] == taken_back("train", "hotel")


def test_an_undo_of_a_loser_that_fails_is_told_and_the_run_completes() -> None:
    shop = Shop()
    flow = racing(shop)
    desk = Desk(shop.app)
    shop.refuses = "train"

    assert desk.run(flow()) == "quick"

    (completed,) = (event for event in desk.log() if isinstance(event, e.RunCompleted))
    assert [text.partition(":")[0] for text in completed.not_undone] == [shop.undo_name]
    assert taken_back("hotel")[0] in shop.ledger


def test_a_run_that_fails_undoes_what_is_left_of_its_losers_once() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> None:
        await racing_inside(shop, ctx)
        await shop.book("taxi")
        await shop.fail()

    Desk(shop.app).fail(flow())
    back = [line for line in shop.ledger if line[0] == "-"]
    assert back == taken_back("train", "hotel", "taxi", "flight")


async def racing_inside(shop: Shop, ctx: weft.Context) -> None:
    async def slow() -> None:
        await shop.book("hotel")
        await shop.book("train")
        await ctx.sleep("1h")

    async def quick() -> None:
        await shop.book("flight")
        await ctx.sleep("1s")

    await ctx.race("first", {"slow": slow(), "quick": quick()})
    await ctx.sleep("1m")


def test_a_loser_that_was_undone_is_performed_anew_under_new_keys() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> str:
        await racing_inside(shop, ctx)
        await shop.fail()
        return "done"

    world = World(shop.app)
    run = world.start(flow(), id="r-1")
    world.settle()
    world.advance("2h")
    assert run.status == "failed"
    world.fake("fail", None)

    world.perform(lambda: shop.app.get("r-1").retry(start="first"))
    world.advance("2h")

    assert run.result() == "done"
    assert [line for line in shop.ledger if line[0] == "-"] == taken_back("train", "hotel", "flight", "train", "hotel")
    assert len(set(shop.keys)) == 5
