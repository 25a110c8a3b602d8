"""``ctx.step``: a step written in place, recorded like any other; its body lives with the code that wrote it."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core import events as e


def test_an_inline_step_runs_once_and_is_recorded_under_its_name() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    def draw() -> int:
        runs.append(1)
        return 7

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        drawn = await ctx.step("draw", draw)
        await ctx.receive("go")
        return drawn

    desk = Desk(app)
    assert desk.across_a_crash(flow()) == 7
    assert runs == [1]
    assert desk.places() == ["draw", "go"]


def test_an_inline_step_may_be_async_or_give_an_awaitable() -> None:
    app = weft.App("memory://")

    async def slow(n: int) -> int:
        await asyncio.sleep(1)
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def own() -> int:
            return await slow(2)

        return await ctx.step("a", lambda: slow(1)) + await ctx.step("b", own)

    assert Desk(app).run(flow()) == 3


def test_an_inline_step_is_retried_and_fails_like_any_other() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    async def broken() -> None:
        attempts.append(weft.task().attempt)
        raise OSError("down")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.step("reach", broken, retries=2)
        except weft.StepFailed as failed:
            return f"{failed.failure.type} {failed.failure.step} {failed.failure.attempts}"
        return "?"

    assert Desk(app).run(flow()) == "OSError reach 3"
    assert attempts == [1, 2, 3]


def test_an_inline_step_has_a_timeout() -> None:
    app = weft.App("memory://")

    async def slow() -> None:
        await asyncio.sleep(60)

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.step("slow", slow, timeout="1s", retries=0)
        except weft.TimedOut:
            return "late"
        return "?"

    assert Desk(app).run(flow()) == "late"


def test_an_inline_step_interrupted_by_a_crash_is_performed_by_the_code_that_comes_back() -> None:
    app = weft.App("memory://")
    runs: list[str] = []

    async def work() -> str:
        runs.append(weft.task().key)
        if len(runs) == 1:
            await asyncio.sleep(3600)
        return "done"

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.step("work", work)

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == "done"
    assert len(runs) == 2
    assert len(set(runs)) == 1


def test_an_inline_step_waiting_for_its_next_attempt_survives_leaving_memory() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    async def flaky() -> str:
        runs.append(1)
        if len(runs) == 1:
            raise OSError
        return "done"

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.step("flaky", flaky, retries=weft.Retry(2, "fixed", "10m", "10m"))

    desk = Desk(app)
    assert desk.run(flow()) == "done"
    assert len(runs) == 2


def test_an_inline_irreversible_step_is_tried_once() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    async def wire() -> None:
        runs.append(1)
        raise OSError

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.step("wire", wire, effect="irreversible")

    Desk(app).fail(flow())
    assert runs == [1]


def test_an_inline_step_may_have_a_registered_undo_that_gets_the_result() -> None:
    app = weft.App("memory://")
    undone: list[str] = []

    @app.step
    async def release(result: str) -> None:
        undone.append(result)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.step("lock", lambda: "lock-1", undo=release)
        raise weft.Rollback

    Desk(app).fail(flow())
    assert undone == ["lock-1"]


def test_an_undo_that_is_no_registered_step_is_refused() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.step("lock", lambda: 1, undo=lambda: None)

    assert Desk(app).fail(flow()).type == "UsageError"


def test_an_ephemeral_step_may_begin_before_it_is_recorded() -> None:
    app = weft.App("memory://")
    recorded: list[bool] = []

    async def look() -> int:
        recorded.append("run" in desk.store.content.ids)
        return 5

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        return await ctx.step("look", look, ephemeral=True)

    desk = Desk(app)
    assert desk.run(flow()) == 5
    scheduled = [event for event in desk.log() if isinstance(event, e.TaskScheduled)]
    assert [event.early for event in scheduled] == [True]


def test_the_result_of_an_ephemeral_step_is_recorded_all_the_same() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    async def look() -> int:
        runs.append(1)
        return len(runs)

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        seen = await ctx.step("look", look, ephemeral=True)
        await ctx.receive("go")
        return seen

    assert Desk(app).across_a_crash(flow()) == 1
    assert runs == [1]


def test_the_result_has_the_type_that_the_function_says() -> None:
    app = weft.App("memory://")

    def pair() -> tuple[int, str]:
        return 1, "a"

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return type(await ctx.step("pair", pair)).__name__

    assert Desk(app).run(flow()) == "tuple"


def test_a_result_that_cannot_be_stored_fails_the_step_at_once() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    def give() -> object:
        runs.append(1)
        return object()

    @app.workflow
    async def flow(ctx: weft.Context) -> object:
        return await ctx.step("give", give)

    assert "give returned" in Desk(app).fail(flow()).message
    assert runs == [1]


@pytest.mark.parametrize("name", ["", "a/b", "a#2", "~1", "&0", "!x", "x" * 201, "a\nb"])
def test_a_name_that_could_be_taken_for_another_place_is_refused(name: str) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.step(name, lambda: 1)

    assert Desk(app).fail(flow()).code == "value.bad_name"


def test_the_context_cannot_be_used_inside_a_step() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def inner() -> None:
            await ctx.sleep("1s")

        outcome = await ctx.try_step(ctx.step("outer", inner, retries=0))
        assert isinstance(outcome, weft.Err)
        return outcome.failure.type

    assert Desk(app).run(flow()) == "NoContext"
