"""Trying a failed run again: what succeeded stays, what failed or was undone is performed anew."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


class Works:
    """An app with a step that works only when told so."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.seen: list[str] = []
        self.broken = True
        self.work = self.app.step(name="work", retries=0)(self._work)
        self.book = self.app.step(name="book", retries=0)(self._book)
        self.book.undo(self.unbook)

    async def _work(self, name: str) -> str:
        self.seen.append(name)
        if self.broken and name.startswith("bad"):
            raise OSError(name)
        return name

    async def _book(self, name: str) -> str:
        self.seen.append(f"+{name}")
        return name

    async def unbook(self, name: str) -> None:
        self.seen.append(f"-{name}")

    def again(self, desk: Desk, **options: Any) -> Any:
        self.broken = False

        async def scene() -> Any:
            run = self.app.get("run")
            await run.retry(**options)
            return await run.result()

        return desk.play(scene)


def test_a_failed_run_goes_on_where_it_failed() -> None:
    works = Works()

    @works.app.workflow
    async def flow() -> list[str]:
        return [await works.work("a"), await works.work("bad"), await works.work("c")]

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk) == ["a", "bad", "c"]
    assert works.seen == ["a", "bad", "bad", "c"]
    assert desk.status() == "completed"


def test_the_key_of_a_step_is_the_same_after_a_retry_by_hand() -> None:
    app = weft.App("memory://")
    keys: list[str] = []

    @app.step(retries=0)
    async def work() -> None:
        keys.append(weft.task().key)
        if len(keys) == 1:
            raise OSError

    @app.workflow
    async def flow() -> None:
        await work()

    async def again() -> None:
        run = app.get("run")
        await run.retry()
        await run.result()

    desk = Desk(app)
    desk.fail(flow())
    desk.play(again)
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_what_was_undone_is_performed_again() -> None:
    works = Works()

    @works.app.workflow
    async def flow() -> list[str]:
        return [await works.book("a"), await works.book("b"), await works.work("bad")]

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk) == ["a", "b", "bad"]
    assert works.seen == ["+a", "+b", "bad", "-b", "-a", "+a", "+b", "bad"]


def test_what_was_undone_in_earlier_rounds_of_a_loop_is_performed_again() -> None:
    """Else the run would go on as if those bookings still existed."""
    works = Works()

    @works.app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            await works.book(str(n))
            if n == 3:
                await works.work("bad")
                return weft.done(n)
            return weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0, keep=1)

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk) == 3
    booked = [name for name in works.seen if name[0] in "+-"]
    assert booked == ["+0", "+1", "+2", "+3", "-3", "-2", "-1", "-0", "+0", "+1", "+2", "+3"]


def test_what_was_undone_in_a_branch_that_won_is_performed_again() -> None:
    works = Works()

    @works.app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def slow() -> str:
            await ctx.sleep("1h")
            return "slow"

        winner = await ctx.race("first", {"book": works.book("a"), "slow": slow()})
        await works.work("bad")
        return winner.name

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk) == "book"
    assert works.seen == ["+a", "bad", "-a", "+a", "bad"]


def test_a_failed_round_of_a_loop_is_tried_again_and_not_the_whole_loop() -> None:
    works = Works()

    @works.app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            await works.work("bad" if n == 3 else str(n))
            return weft.done(n) if n == 4 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0)

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk) == 4
    assert works.seen == ["0", "1", "2", "bad", "bad", "4"]


def test_failed_branches_are_tried_again_and_the_others_are_not() -> None:
    works = Works()

    @works.app.workflow
    async def flow(ctx: weft.Context) -> Any:
        return await ctx.join("all", {"a": works.work("a"), "b": works.work("bad"), "c": works.work("c")})

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk) == {"a": "a", "b": "bad", "c": "c"}
    assert works.seen == ["a", "bad", "c", "bad"]


def test_an_error_of_the_code_itself_can_be_tried_again_with_better_code() -> None:
    def build(*, better: bool) -> weft.App:
        app = weft.App("memory://")

        @app.step
        async def work() -> int:
            seen.append(1)
            return 6

        @app.workflow
        async def flow() -> float:
            return await work() / (2 if better else 0)

        return app

    seen: list[int] = []
    first, second = build(better=False), build(better=True)
    desk = Desk(first)
    assert desk.fail(first.registered.workflow_named("flow")()).type == "ZeroDivisionError"

    async def again() -> Any:
        run = second.get("run")
        await run.retry()
        return await run.result()

    assert desk.play(again, app=second) == 3
    assert seen == [1]


def test_from_a_place_on_everything_is_performed_anew() -> None:
    works = Works()

    @works.app.workflow
    async def flow() -> None:
        for name in ("a", "b", "c", "bad"):
            await works.work.options(name=name)(name)

    desk = Desk(works.app)
    desk.fail(flow())
    works.again(desk, start="b")
    assert works.seen == ["a", "b", "c", "bad", "b", "c", "bad"]


def test_from_a_place_in_a_loop_the_loop_goes_on_from_that_round() -> None:
    works = Works()

    @works.app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            await works.work("bad" if n == 4 else str(n))
            return weft.done(n) if n == 4 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0)

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk, start="rounds/~2/work") == 4
    assert works.seen[5:][-3:] == ["2", "3", "bad"]


def test_a_place_that_is_not_recorded_is_refused() -> None:
    works = Works()

    @works.app.workflow
    async def flow() -> None:
        await works.work("bad")

    desk = Desk(works.app)
    desk.fail(flow())
    with pytest.raises(weft.NotFound):
        works.again(desk, start="nowhere")
    assert desk.status() == "failed"


def test_only_a_failed_run_can_be_tried_again() -> None:
    works = Works()

    @works.app.workflow
    async def good() -> int:
        return 1

    @works.app.workflow
    async def waiting(ctx: weft.Context) -> None:
        await ctx.receive("never")

    async def scene() -> None:
        done, open_, stopped = (
            await works.app.start(good(), id="done"),
            await works.app.start(waiting(), id="open"),
            await works.app.start(waiting(), id="stopped"),
        )
        await done.result()
        await stopped.cancel()
        await calm()
        for run in (done, open_, stopped):
            with pytest.raises(weft.Refused):
                await run.retry()

    Desk(works.app).play(scene)


def test_a_retry_is_durable_when_it_returns() -> None:
    works = Works()

    @works.app.workflow
    async def flow() -> str:
        return await works.work("bad")

    async def ask() -> None:
        await works.app.get("run").retry()

    async def end() -> Any:
        return await works.app.get("run").result()

    desk = Desk(works.app)
    desk.fail(flow())
    works.broken = False
    desk.play(ask, crash=True)
    assert desk.play(end) == "bad"


def test_a_run_that_fails_again_can_be_tried_again_and_again() -> None:
    works = Works()

    @works.app.workflow
    async def flow() -> list[str]:
        return [await works.book("a"), await works.work("bad")]

    async def again() -> None:
        run = works.app.get("run")
        await run.retry()
        with pytest.raises(weft.RunFailed):
            await run.result()

    desk = Desk(works.app)
    desk.fail(flow())
    for _ in range(3):
        desk.play(again)
    assert works.again(desk) == ["a", "bad"]
    assert works.seen.count("+a") == 5
    assert works.seen.count("-a") == 4


def test_a_failed_child_is_started_again_under_another_id() -> None:
    works = Works()

    @works.app.workflow
    async def child() -> str:
        return await works.work("bad")

    @works.app.workflow
    async def flow() -> str:
        return await child()

    desk = Desk(works.app)
    desk.fail(flow())
    assert works.again(desk) == "bad"
    assert sorted(desk.store.content.ids) == ["run", "run.child", "run.child~1"]


def test_messages_that_came_after_the_failure_are_refused_and_those_before_are_kept() -> None:
    works = Works()

    @works.app.workflow
    async def flow(ctx: weft.Context) -> str:
        word = await ctx.receive("word", str)
        await works.work("bad")
        return word

    async def scene() -> None:
        run = await works.app.start(flow(), id="run")
        await run.send("word", "kept")
        with pytest.raises(weft.RunFailed):
            await run.result()
        with pytest.raises(weft.RunFinished):
            await run.send("word", "late")

    desk = Desk(works.app)
    desk.play(scene)
    assert works.again(desk) == "kept"


def test_a_run_that_timed_out_gets_its_whole_time_again() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1m")
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("word", str)

    async def again() -> Any:
        run = app.get("run")
        await run.retry()
        await asyncio.sleep(10)
        await run.send("word", "at last")
        return await run.result()

    desk = Desk(app)
    assert desk.fail(flow()).code == "run.timed_out"
    assert desk.play(again) == "at last"
