"""A run that fails or is cancelled takes back what it did, newest first, and says what it could not take back."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core import events as e
from weft.testing import World


class Shop:
    """An app whose only trade is to book things and take them back, and the ledger of it."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.ledger: list[str] = []
        self.keys: list[str] = []
        self.refuses = ""
        self.book = self.app.step(name="book", retries=0)(self._book)
        self.undo_name = self.book.undo(self.unbook).name
        self.fail = self.app.step(name="fail", retries=0)(self._fail)

    async def _book(self, item: str) -> str:
        self.ledger.append(f"+{item}")
        return f"ticket {item}"

    async def unbook(self, item: str, result: str) -> None:
        self.keys.append(weft.task().key)
        if item == self.refuses:
            raise weft.Critical("no way back")
        self.ledger.append(f"-{item} by {result}")

    async def _fail(self) -> None:
        raise OSError("no")


def taken_back(*items: str) -> list[str]:
    return [f"-{item} by ticket {item}" for item in items]


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
    assert isinstance(ended, e.RunFailed)
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


# --- losers of a race --------------------------------------------------------------------------------------------


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
