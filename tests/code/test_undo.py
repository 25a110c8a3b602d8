"""A run that fails or is cancelled takes back what it did, newest first, and says what it could not take back."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.shop import Shop, taken_back
from tests.code.timeless import calm
from weft.core import events as e
from weft.testing import World


def test_what_was_done_is_undone_newest_first_with_its_own_arguments_and_result() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow() -> None:
        await shop.book("a")
        await shop.book("b")
        await shop.book("c")
        await shop.fail()

    desk = Desk(shop.app)
    failure = desk.fail(flow())
    assert shop.ledger == ["+a", "+b", "+c", *taken_back("c", "b", "a")]
    assert failure.type == "StepFailed"
    assert desk.status() == "failed"


def test_a_run_that_succeeds_undoes_nothing() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow() -> None:
        await shop.book("a")

    Desk(shop.app).run(flow())
    assert shop.ledger == ["+a"]


def test_a_failure_that_the_code_dealt_with_undoes_nothing() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow() -> None:
        await shop.book("a")
        try:
            await shop.fail()
        except weft.StepFailed:
            await shop.book("b")

    Desk(shop.app).run(flow())
    assert shop.ledger == ["+a", "+b"]


def test_a_failure_handled_earlier_does_not_hide_what_came_after_it() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> None:
        await shop.book("a")
        await ctx.try_step(shop.fail())
        await shop.book("b")
        await shop.fail()

    Desk(shop.app).fail(flow())
    assert shop.ledger == ["+a", "+b", *taken_back("b", "a")]


def test_rollback_raised_in_the_workflow_fails_it_and_undoes() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow() -> None:
        await shop.book("a")
        raise weft.Rollback("changed my mind")

    failure = Desk(shop.app).fail(flow())
    assert failure.type == "Rollback"
    assert failure.message == "changed my mind"
    assert shop.ledger == ["+a", *taken_back("a")]


def test_an_ordinary_exception_of_the_workflow_undoes_too() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow() -> None:
        await shop.book("a")
        raise ZeroDivisionError

    assert Desk(shop.app).fail(flow()).type == "ZeroDivisionError"
    assert shop.ledger == ["+a", *taken_back("a")]


def test_every_round_of_a_loop_is_undone_also_those_that_left_the_history() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def body(n: int) -> weft.Turn[int, None]:
            await shop.book(str(n))
            if n == 4:
                await shop.fail()
            return weft.again(n + 1)

        await ctx.loop("rounds", body, state=0, keep=1)

    Desk(shop.app).fail(flow())
    assert shop.ledger[5:] == taken_back("4", "3", "2", "1", "0")


def test_a_finished_loop_is_undone() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def body(n: int) -> weft.Turn[int, str]:
            await shop.book(str(n))
            return weft.again(n + 1) if n < 2 else weft.done("end")

        await ctx.loop("rounds", body, state=0)
        await shop.fail()

    Desk(shop.app).fail(flow())
    assert shop.ledger[3:] == taken_back("2", "1", "0")


def test_branches_of_a_join_and_items_of_a_map_are_undone_in_the_order_of_the_log() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.join("both", {"x": shop.book("x"), "y": shop.book("y")})
        await ctx.map("items", shop.book, ["1", "2"])
        await shop.fail()

    desk = Desk(shop.app)
    desk.fail(flow())
    done = [event.task for event in desk.log() if isinstance(event, e.TaskSucceeded)][:4]
    undone = [event.of for event in desk.log() if isinstance(event, e.UndoScheduled)]
    assert undone == done[::-1]
    assert sorted(shop.ledger[4:]) == sorted(taken_back("x", "y", "1", "2"))


def test_what_a_loser_of_a_race_completed_is_undone() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def slow() -> str:
            await shop.book("slow")
            await ctx.sleep("1h")
            return "slow"

        async def quick() -> str:
            await shop.book("quick")
            await ctx.sleep("1s")
            return "quick"

        winner = await ctx.race("first", {"slow": slow(), "quick": quick()})
        assert winner.name == "quick"
        await shop.fail()
        return winner.value

    Desk(shop.app).fail(flow())
    assert shop.ledger == ["+slow", "+quick", *taken_back("slow", "quick")]


def test_a_step_with_an_undo_that_loses_a_race_may_end_first_and_is_then_undone() -> None:
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
    async def flow(ctx: weft.Context) -> None:
        async def quick() -> str:
            await ctx.sleep("1s")
            return "quick"

        await ctx.race("first", {"book": book(), "quick": quick()})
        raise weft.Rollback("now")

    Desk(app).fail(flow())
    assert ledger == ["+", "-ticket"]


def test_a_running_step_with_an_undo_is_let_end_when_the_run_fails() -> None:
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

    @app.step(retries=0)
    async def fail() -> None:
        raise OSError

    @app.workflow
    async def flow() -> None:
        await asyncio.gather(book(), fail())

    desk = Desk(app)
    desk.fail(flow())
    assert ledger == ["+", "-ticket"]
    assert desk.kinds()[-1] == "run_failed"


def test_an_unknown_outcome_is_undone_too_without_a_result() -> None:
    app = weft.App("memory://")
    ledger: list[Any] = []

    @app.step(effect="irreversible", timeout="1s")
    async def wire(cents: int) -> str:
        await asyncio.sleep(60)
        return "sent"

    @wire.undo
    async def recall(cents: int, result: str | None) -> None:
        ledger.append((cents, result))

    @app.workflow
    async def flow() -> None:
        await wire(7)

    Desk(app).fail(flow())
    assert ledger == [(7, None)]


def test_a_step_that_failed_for_good_is_not_undone() -> None:
    shop = Shop()

    @shop.app.step(retries=0)
    async def half() -> None:
        raise OSError

    @half.undo
    async def unhalf() -> None:
        shop.ledger.append("-half")

    @shop.app.workflow
    async def flow() -> None:
        await shop.book("a")
        await half()

    Desk(shop.app).fail(flow())
    assert shop.ledger == ["+a", *taken_back("a")]


def test_an_undo_that_fails_is_tried_again_then_named_and_the_others_still_run() -> None:
    shop = Shop()
    tries: list[int] = []

    @shop.app.step
    async def odd() -> None: ...

    @odd.undo
    async def not_odd() -> None:
        tries.append(1)
        raise OSError("stuck")

    @shop.app.workflow
    async def flow() -> None:
        await shop.book("a")
        await odd()
        await shop.fail()

    desk = Desk(shop.app)
    failure = desk.fail(flow())
    assert len(tries) == 4
    assert shop.ledger == ["+a", *taken_back("a")]
    assert failure.type == "StepFailed"
    assert "fail" in failure.message
    ended = desk.log()[-1]
    assert isinstance(ended, e.RunFailedEvent)
    assert ended.not_undone == ["not_odd: stuck"]


def test_an_undo_interrupted_by_a_crash_is_done_again_and_those_before_it_are_not() -> None:
    shop = Shop()
    sleeping = [True]

    @shop.app.step
    async def slow() -> None: ...

    @slow.undo
    async def unslow() -> None:
        shop.ledger.append("-slow")
        if sleeping:
            await asyncio.sleep(3600)

    @shop.app.workflow
    async def flow() -> None:
        await slow()
        await shop.book("a")
        await shop.fail()

    async def begin() -> None:
        await shop.app.start(flow(), id="run")
        await calm()

    async def end() -> None:
        sleeping.clear()
        with pytest.raises(weft.RunFailed):
            await shop.app.get("run").result()

    desk = Desk(shop.app)
    desk.play(begin, crash=True)
    assert desk.status() == "rolling_back"
    desk.play(end)
    assert shop.ledger == ["+a", *taken_back("a"), "-slow", "-slow"]


def test_undoing_does_not_run_the_workflow_again() -> None:
    shop = Shop()
    passes: list[int] = []

    @shop.app.workflow
    async def flow() -> None:
        passes.append(1)
        await shop.book("a")
        await shop.fail()

    Desk(shop.app).fail(flow())
    assert passes == [1]


def test_an_undo_may_take_only_what_the_step_has() -> None:
    app = weft.App("memory://")

    @app.step
    async def book(item: str) -> str:
        return item

    def undo(ticket: str) -> None: ...

    with pytest.raises(weft.UsageError, match="ticket"):
        book.undo(undo)


def test_a_second_undo_is_refused() -> None:
    shop = Shop()
    with pytest.raises(weft.UsageError):
        shop.book.undo(shop.unbook)


def test_an_undo_gets_the_defaults_that_the_call_left_out() -> None:
    app = weft.App("memory://")
    seen: list[tuple[str, int]] = []

    @app.step
    async def book(item: str, count: int = 3) -> None: ...

    @book.undo
    async def unbook(item: str, count: int = 3) -> None:
        seen.append((item, count))

    @app.workflow
    async def flow() -> None:
        await book("a")
        await book("b", 5)
        raise weft.Rollback

    Desk(app).fail(flow())
    assert seen == [("b", 5), ("a", 3)]


def test_an_undo_of_a_large_call_gets_it_whole() -> None:
    app = weft.App("memory://")
    seen: list[tuple[int, int]] = []

    @app.step
    async def put(text: str) -> str:
        return text * 2

    @put.undo
    async def remove(text: str, result: str) -> None:
        seen.append((len(text), len(result)))

    @app.workflow
    async def flow() -> None:
        await put("x" * 50_000)
        raise weft.Rollback

    Desk(app).fail(flow())
    assert seen == [(50_000, 100_000)]


def test_the_keys_of_undos_differ_from_each_other_also_for_rounds_that_left_the_history() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def body(n: int) -> weft.Turn[int, None]:
            await shop.book(str(n))
            if n == 3:
                await shop.fail()
            return weft.again(n + 1)

        await ctx.loop("rounds", body, state=0, keep=0)

    Desk(shop.app).fail(flow())
    assert len(set(shop.keys)) == 4


def test_cancelling_undoes_newest_first() -> None:
    shop = Shop()

    @shop.app.workflow
    async def flow(ctx: weft.Context) -> None:
        await shop.book("a")
        await shop.book("b")
        await ctx.receive("never")

    async def scene() -> None:
        run = await shop.app.start(flow(), id="run")
        await calm()
        await run.cancel("enough")
        with pytest.raises(weft.RunCancelled):
            await run.result()

    Desk(shop.app).play(scene)
    assert shop.ledger == ["+a", "+b", *taken_back("b", "a")]


def test_an_undo_gets_the_defaults_of_what_the_call_left_out() -> None:
    app = weft.App("memory://")
    given: list[tuple[str, int, str]] = []

    @app.step
    async def reserve(item: str, n: int = 2) -> str:
        return f"{n} {item}"

    @reserve.undo
    async def give_back(item: str, n: int, result: str) -> None:
        given.append((item, n, result))

    @app.workflow
    async def trip() -> None:
        await reserve("hotel")
        raise ValueError("no")

    with pytest.raises(weft.RunFailed):
        World(app).run(trip())
    assert given == [("hotel", 2, "2 hotel")]
