"""A workflow with a timeout: when its time is up the code is told, what it did is undone, and the run has failed."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import BEGIN_MS, calm


def test_a_run_that_takes_too_long_fails_with_timed_out() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1h")
    async def flow(ctx: weft.Context) -> None:
        await ctx.receive("never")

    desk = Desk(app)
    failure = desk.fail(flow())
    assert failure.type == "TimedOut"
    assert failure.code == "run.timed_out"
    assert 3600 <= (desk.now_ms - BEGIN_MS) / 1000 < 3610


def test_a_run_in_time_is_not_disturbed() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1h")
    async def flow(ctx: weft.Context) -> str:
        await ctx.sleep("59m")
        return "in time"

    assert Desk(app).run(flow()) == "in time"


def test_the_code_may_clean_up_and_then_everything_is_undone() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def book() -> None:
        seen.append("book")

    @book.undo
    async def unbook() -> None:
        seen.append("unbook")

    @app.step
    async def note() -> None:
        seen.append("note")

    @app.workflow(timeout="1m")
    async def flow(ctx: weft.Context) -> None:
        await book()
        try:
            await ctx.receive("never")
        except asyncio.CancelledError:
            await note()
            raise

    assert Desk(app).fail(flow()).type == "TimedOut"
    assert seen == ["book", "note", "unbook"]


def test_the_time_runs_on_while_nobody_is_there_and_over_restarts() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1h")
    async def flow(ctx: weft.Context) -> None:
        await ctx.receive("never")

    async def begin() -> None:
        await app.start(flow(), id="run")
        await asyncio.sleep(1800)

    async def end() -> None:
        with pytest.raises(weft.RunFailed):
            await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    desk.now_ms += 3_600_000
    before = desk.now_ms
    desk.play(end)
    assert desk.now_ms - before < 60_000


def test_a_run_that_shrugs_it_off_has_failed_all_the_same() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1m")
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.receive("never")
        except asyncio.CancelledError:
            await ctx.sleep("1s")
        return "fine"

    assert Desk(app).fail(flow()).type == "TimedOut"


def test_a_cancel_while_it_cleans_up_after_its_timeout_is_first_come_first_served() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1m")
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("never")
        except asyncio.CancelledError:
            await ctx.sleep("1h")

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(70)
        await run.cancel("too slow")
        with pytest.raises((weft.RunFailed, weft.RunCancelled)):
            await run.result()
        return await run.status()

    assert Desk(app).play(scene) in {"failed", "cancelled"}


def test_children_are_stopped_with_their_parent() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child(ctx: weft.Context) -> None:
        await ctx.receive("never")

    @app.workflow(timeout="1m")
    async def flow() -> None:
        await child()

    desk = Desk(app)
    assert desk.fail(flow()).type == "TimedOut"
    assert desk.status("run.child") == "cancelled"


def test_a_child_has_the_timeout_of_its_own_workflow() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1m")
    async def child(ctx: weft.Context) -> None:
        await ctx.receive("never")

    @app.workflow
    async def flow() -> str:
        try:
            await child()
        except weft.RunFailed as failed:
            return failed.failure.code
        return "?"

    assert Desk(app).run(flow()) == "run.timed_out"


def test_a_paused_run_is_told_when_it_is_resumed() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="1m")
    async def flow(ctx: weft.Context) -> None:
        await ctx.receive("never")

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()
        await asyncio.sleep(100)
        assert await run.status() == "paused"
        await run.resume()
        with pytest.raises(weft.RunFailed):
            await run.result()

    Desk(app).play(scene)
