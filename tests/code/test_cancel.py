"""Cancel: told to the code at its place in the log; the code may clean up with steps; then everything is undone."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def cancelled(app: weft.App, call: Any, *, seconds: float = 1, reason: str = "") -> Desk:
    """A desk after a run that was cancelled after a while."""

    async def scene() -> None:
        run = await app.start(call, id="run")
        await asyncio.sleep(seconds)
        await run.cancel(reason)
        with pytest.raises(weft.RunCancelled) as told:
            await run.result()
        assert told.value.reason == reason

    desk = Desk(app)
    desk.play(scene)
    return desk


def test_a_cancelled_run_is_cancelled_with_its_reason() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    desk = cancelled(app, flow(), reason="not wanted")
    assert desk.status() == "cancelled"
    assert desk.kinds() == [
        "run_started", "timer_set", "cancel_requested", "entry_cancelled", "run_ending", "run_cancelled",
    ]  # fmt: skip


def test_finally_may_use_steps() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def release(name: str) -> None:
        await asyncio.sleep(5)
        seen.append(name)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("never")
        finally:
            await release("lock")
            await ctx.sleep("10s")
            await release("more")

    desk = cancelled(app, flow())
    assert seen == ["lock", "more"]
    assert desk.status() == "cancelled"


def test_a_crash_while_cleaning_up_goes_on_cleaning_up() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def release(name: str) -> None:
        seen.append(name)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("never")
        finally:
            await release("first")
            await ctx.sleep("1h")
            await release("second")

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        await run.cancel()
        await calm()

    async def end() -> None:
        with pytest.raises(weft.RunCancelled):
            await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.status() == "cancelling"
    desk.play(end)
    assert seen == ["first", "second"]


def test_a_run_that_shrugs_off_its_cancel_ends_cancelled_all_the_same() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.receive("never")
        except asyncio.CancelledError:
            await ctx.sleep("1s")
        return "finished anyway"

    assert cancelled(app, flow()).status() == "cancelled"


def test_an_error_while_cleaning_up_does_not_hide_the_cancel() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("never")
        finally:
            raise ZeroDivisionError

    assert cancelled(app, flow()).status() == "cancelled"


def test_a_running_step_is_stopped() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def slow() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("stopped")
            raise

    @app.workflow
    async def flow() -> None:
        await slow()

    cancelled(app, flow())
    assert seen == ["stopped"]


def test_cancelling_twice_tells_the_code_once() -> None:
    app = weft.App("memory://")
    told: list[int] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("never")
        except asyncio.CancelledError:
            told.append(1)
            await ctx.sleep("10s")
            raise

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        await run.cancel("first")
        await run.cancel("second")
        with pytest.raises(weft.RunCancelled) as ended:
            await run.result()
        assert ended.value.reason == "first"

    desk = Desk(app)
    desk.play(scene)
    assert told == [1]
    assert desk.kinds().count("cancel_requested") == 1


def test_a_finished_run_cannot_be_cancelled() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> int:
        return 1

    async def scene() -> None:
        run = await app.start(flow())
        assert await run.result() == 1
        with pytest.raises(weft.RunFinished):
            await run.cancel()

    Desk(app).play(scene)


def test_whatever_is_first_in_the_log_wins() -> None:
    """A result that was recorded before the cancel is told first, so the run may have ended."""
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("n", str)

    async def message_first() -> str:
        run = await app.start(flow(), id="a")
        await calm()
        sent = asyncio.create_task(run.send("n", "in time"))
        stopped = asyncio.create_task(run.cancel())
        await asyncio.wait([sent, stopped])
        await sent
        assert isinstance(stopped.exception(), weft.RunFinished)
        return await run.result()

    async def cancel_first() -> None:
        run = await app.start(flow(), id="b")
        await calm()
        stopped = asyncio.create_task(run.cancel())
        sent = asyncio.create_task(run.send("n", "late"))
        await asyncio.wait([sent, stopped])
        await stopped
        with pytest.raises(weft.RunCancelled):
            await run.result()

    desk = Desk(app)
    assert desk.play(message_first) == "in time"
    desk.play(cancel_first)


def test_cancel_beats_pause() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.receive("never")

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()

    Desk(app).play(scene)


def test_a_held_run_can_be_cancelled_and_is_undone() -> None:
    app = weft.App("memory://")
    undone: list[int] = []

    @app.step
    async def book() -> None: ...

    @book.undo
    async def unbook() -> None:
        undone.append(1)

    @app.workflow
    async def flow() -> None:
        await book()
        await asyncio.sleep(5)

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        assert await run.status() == "held"
        assert undone == []
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()

    Desk(app).play(scene)
    assert undone == [1]


def test_a_cancel_for_a_run_at_rest_wakes_it() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.receive("never")

    async def begin() -> None:
        await app.start(flow(), id="run")

    async def end() -> None:
        await asyncio.sleep(60)
        assert not desk.host.runs.actors
        run = app.get("run")
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()

    desk = Desk(app)
    desk.play(begin)
    desk.play(end)


def test_a_cancel_that_nobody_was_there_to_hear_is_heard_later() -> None:
    app, other = weft.App("memory://"), weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.receive("never")

    async def begin() -> None:
        await app.start(flow(), id="run")

    async def elsewhere() -> None:
        await other.get("run").cancel("from afar")

    async def end() -> None:
        with pytest.raises(weft.RunCancelled):
            await app.get("run").result()

    desk = Desk(app)
    desk.play(begin)
    desk.play(elsewhere, app=other)
    desk.play(end)


@pytest.mark.parametrize("reason", ["\0", "\ud800"])
def test_a_reason_that_no_store_can_hold_is_refused_and_the_run_goes_on(reason: str) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("n", str)

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        with pytest.raises(weft.BadValue):
            await run.cancel(reason)
        await run.send("n", "unharmed")
        return await run.result()

    assert Desk(app).play(scene) == "unharmed"


def test_cancel_during_undo_changes_nothing() -> None:
    app = weft.App("memory://")

    @app.step
    async def book() -> None: ...

    @book.undo
    async def unbook() -> None:
        await asyncio.sleep(60)

    @app.workflow
    async def flow() -> None:
        await book()
        raise ValueError("first")

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(1)
        assert await run.status() == "rolling_back"
        await run.cancel()
        with pytest.raises(weft.RunFailed):
            await run.result()

    Desk(app).play(scene)
