"""Leaving memory: ``weft.Evicted`` passes through the code, nothing is logged or performed, the run goes on later."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def at_rest(app: weft.App, call: Any) -> Desk:
    """A desk after a run has left memory and its process has ended."""

    async def scene() -> None:
        await app.start(call, id="run")
        await asyncio.sleep(60)
        assert not desk.host.runs.actors

    desk = Desk(app)
    desk.play(scene)
    return desk


def finished(desk: Desk, app: weft.App) -> Any:
    async def scene() -> Any:
        run = app.get("run")
        await run.send("go")
        return await run.result()

    return desk.play(scene)


def test_a_run_that_waits_leaves_memory_and_comes_back() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        await ctx.receive("go")
        return "back"

    desk = at_rest(app, flow())
    assert desk.kinds() == ["run_started", "message_awaited"]
    assert finished(desk, app) == "back"


def test_evicted_passes_except_exception_and_finally_runs_and_knows_it() -> None:
    app = weft.App("memory://")
    seen: list[Any] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.receive("go")
        except Exception:
            seen.append("swallowed")
        except weft.Evicted:
            seen.append("evicted")
            raise
        finally:
            seen.append(ctx.evicted)
        return "back"

    desk = at_rest(app, flow())
    assert seen == ["evicted", True]
    assert finished(desk, app) == "back"
    assert seen == ["evicted", True, False]


def test_a_step_in_finally_is_not_performed_when_the_code_is_only_evicted() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step
    async def release() -> None:
        seen.append("released")

    @app.step
    def free() -> None:
        seen.append("freed")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.receive("go")
        finally:
            await release()
            await free()
        return "back"

    desk = at_rest(app, flow())
    assert seen == []
    assert desk.kinds() == ["run_started", "message_awaited"]
    assert finished(desk, app) == "back"
    assert seen == ["released", "freed"]


CALLS = {
    "sleep": lambda ctx: ctx.sleep("1s"),
    "receive": lambda ctx: ctx.receive("n"),
    "messages": lambda ctx: ctx.messages("n"),
    "step": lambda ctx: ctx.step("x", lambda: 1),
    "now": lambda ctx: ctx.now(),
    "random": lambda ctx: ctx.random(),
    "uuid": lambda ctx: ctx.uuid(),
    "version": lambda ctx: ctx.version("v", 1),
    "removed": lambda ctx: ctx.removed("x", "step"),
    "set": lambda ctx: ctx.set(a=1),
    "ask": lambda ctx: ctx.ask("q", title="?"),
    "join": lambda ctx: ctx.join("j", {}),
    "map": lambda ctx: ctx.map("m", lambda n: n, []),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_call_raises_evicted_again(name: str) -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await ctx.receive("go")
        except weft.Evicted:
            try:
                await CALLS[name](ctx)
            except BaseException as error:
                seen.append(type(error).__name__)
                raise

    desk = at_rest(app, flow())
    assert seen == ["Evicted"]
    assert desk.kinds() == ["run_started", "message_awaited"]


def test_what_the_code_returns_or_raises_after_eviction_is_ignored() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def shrug(ctx: weft.Context) -> str:
        try:
            await ctx.receive("go")
        except weft.Evicted:
            return "ended by mistake"
        return "back"

    @app.workflow
    async def fail(ctx: weft.Context) -> str:
        try:
            await ctx.receive("go")
        except weft.Evicted:
            raise ValueError("by mistake") from None
        return "back"

    for call in (shrug(), fail()):
        desk = at_rest(app, call)
        assert desk.kinds() == ["run_started", "message_awaited"]
        assert finished(desk, app) == "back"


def test_code_that_goes_on_waiting_after_eviction_is_dropped() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.receive("go")
        except weft.Evicted:
            await asyncio.get_running_loop().create_future()
        return "back"

    desk = at_rest(app, flow())
    assert finished(desk, app) == "back"


def test_every_task_of_the_code_hears_of_it() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def wait(name: str) -> None:
            try:
                await ctx.receive(name)
            finally:
                seen.append(f"{name} {ctx.evicted}")

        await asyncio.gather(wait("a"), wait("b"), ctx.join("two", {"c": wait("c"), "d": wait("d")}))

    at_rest(app, flow())
    assert sorted(seen) == ["a True", "b True", "c True", "d True"]


def test_shutting_down_evicts_and_costs_no_attempt() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step(retries=0)
    async def slow() -> str:
        attempts.append(weft.task().attempt)
        await asyncio.sleep(3600 if len(attempts) == 1 else 1)
        return "done"

    @app.workflow
    async def flow() -> str:
        return await slow()

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin)
    assert "task_failed" not in desk.kinds()
    assert desk.play(end) == "done"
    assert attempts == [1, 1]


def test_a_step_that_ends_while_shutting_down_is_recorded() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    @app.step
    async def short() -> str:
        runs.append(1)
        await asyncio.sleep(0.5)
        return "done"

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        found = await short()
        await ctx.receive("go")
        return found

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    desk = Desk(app)
    desk.play(begin)
    assert "task_succeeded" in desk.kinds()
    assert finished(desk, app) == "done"
    assert runs == [1]


def test_coming_back_writes_nothing() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, int]:
            await work(n)
            return weft.done(n) if n == 3 else weft.again(n + 1)

        await ctx.loop("rounds", body, state=0)
        await ctx.join("both", {"a": work(1), "b": work(2)})
        await ctx.race("first", {"a": work(1), "b": work(2)})
        await ctx.now()
        await ctx.receive("go")
        return 7

    async def wake() -> None:
        await app.get("run").pause()
        await app.get("run").resume()
        await asyncio.sleep(60)

    desk = at_rest(app, flow())
    before = desk.kinds()
    desk.play(wake)
    assert desk.kinds() == [*before, "run_paused", "run_resumed"]
    assert finished(desk, app) == 7


def test_a_run_with_a_step_under_way_stays_in_memory() -> None:
    app = weft.App("memory://")

    @app.step
    async def slow() -> str:
        await asyncio.sleep(300)
        return "done"

    @app.workflow
    async def flow() -> str:
        return await slow()

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(200)
        assert len(desk.host.runs.actors) == 1
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene) == "done"
    assert "task_lost" not in desk.kinds()
