"""Pause: no new work, but nothing that happens meanwhile is lost; at resume it is acted on in the order of the log."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def test_a_paused_run_begins_nothing_new_and_goes_on_at_resume() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def work(name: str) -> None:
        seen.append(name)

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        await ctx.sleep("10s")
        await work("after")
        return "done"

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()
        await asyncio.sleep(60)
        assert await run.status() == "paused"
        assert seen == []
        await run.resume()
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene) == "done"
    assert seen == ["after"]


def test_a_running_step_ends_while_paused_and_its_result_is_kept() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def work(name: str) -> str:
        await asyncio.sleep(10)
        seen.append(name)
        return name

    @app.workflow
    async def flow() -> list[str]:
        return [await work("a"), await work("b")]

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()
        await asyncio.sleep(60)
        assert seen == ["a"]
        assert "task_succeeded" in desk.kinds()
        await run.resume()
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene) == ["a", "b"]


def test_messages_and_times_of_the_pause_are_told_in_the_order_of_the_log() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        order: list[str] = []

        async def hear(name: str) -> None:
            await ctx.receive(name)
            order.append(name)

        async def nap() -> None:
            await ctx.sleep("30s")
            order.append("nap")

        await asyncio.gather(hear("a"), nap(), hear("b"))
        return order

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()
        await run.send("b")
        await asyncio.sleep(60)
        await run.send("a")
        await run.resume()
        return await run.result()

    assert Desk(app).play(scene) == ["b", "nap", "a"]


def test_a_retry_waits_for_the_resume() -> None:
    app = weft.App("memory://")
    attempts: list[float] = []

    @app.step(retries=weft.Retry(3, "fixed", "1s"))
    async def flaky() -> str:
        attempts.append(asyncio.get_running_loop().time())
        if len(attempts) == 1:
            raise OSError
        return "ok"

    @app.workflow
    async def flow() -> str:
        return await flaky()

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()
        await asyncio.sleep(100)
        assert len(attempts) == 1
        await run.resume()
        return await run.result()

    assert Desk(app).play(scene) == "ok"


def test_deadlines_run_on_during_a_pause() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("n", str, timeout="10s", default="late")

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()
        await asyncio.sleep(60)
        await run.send("n", "too late")
        await run.resume()
        return await run.result()

    assert Desk(app).play(scene) == "late"


def test_pausing_twice_is_once_and_so_is_resuming() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("n", str)

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        for _ in range(2):
            await run.pause()
        for _ in range(2):
            await run.resume()
        await run.send("n", "x")
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene) == "x"
    assert desk.kinds().count("run_paused") == desk.kinds().count("run_resumed") == 1


def test_a_paused_run_stays_paused_over_a_crash() -> None:
    app = weft.App("memory://")
    seen: list[int] = []

    @app.step
    async def work() -> str:
        seen.append(1)
        await asyncio.sleep(30)
        return "done"

    @app.workflow
    async def flow() -> str:
        return await work()

    async def begin() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        await run.pause()

    async def middle() -> str:
        await asyncio.sleep(200)
        return await app.get("run").status()

    async def end() -> Any:
        run = app.get("run")
        await run.resume()
        return await run.result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(middle, crash=True) == "paused"
    assert len(seen) == 1
    assert desk.play(end) == "done"
    assert len(seen) == 2


@pytest.mark.parametrize("what", ["pause", "resume"])
def test_a_finished_run_can_be_neither(what: str) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> int:
        return 1

    async def scene() -> None:
        run = await app.start(flow())
        await run.result()
        with pytest.raises(weft.RunFinished):
            await getattr(run, what)()

    Desk(app).play(scene)


def test_a_run_that_is_being_cancelled_cannot_be_paused() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("never")
        finally:
            await ctx.sleep("1m")

    async def scene() -> None:
        run = await app.start(flow())
        await calm()
        await run.cancel()
        with pytest.raises(weft.Refused):
            await run.pause()

    Desk(app).play(scene, crash=True)


def test_a_child_that_ended_during_a_pause_is_heard_of() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child(ctx: weft.Context) -> str:
        await ctx.sleep("10s")
        return "grown"

    @app.workflow
    async def flow() -> str:
        return await child()

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(1)
        await run.pause()
        await asyncio.sleep(60)
        await run.resume()
        return await run.result()

    assert Desk(app).play(scene) == "grown"
