"""Changing code on purpose: ``version`` keeps old runs on the old path, ``removed`` passes over what is gone."""

from collections.abc import Callable
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm

Body = Callable[[weft.Context, Any], Any]


def build(body: Body) -> weft.App:
    """An app with one workflow of this body, and steps a, b, c that give their names."""
    app = weft.App("memory://")

    class Steps: ...

    for letter in "abcd":

        async def step(letter: str = letter) -> str:
            return letter

        setattr(Steps, letter, staticmethod(app.step(name=letter)(step)))

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        return await body(ctx, Steps)

    return app


def edited(old: Body, new: Body) -> tuple[Any, Desk]:
    """A run that began with the old code and went on with the new: its result, or its status if it has none."""
    first, second = build(old), build(new)

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await calm()

    async def end() -> Any:
        run = second.get("run")
        await calm()
        if await run.status() == "held":
            return "held"
        await run.send("go")
        await calm()
        return await run.result() if await run.status() == "completed" else await run.status()

    desk = Desk(first)
    desk.play(begin, crash=True)
    return desk.play(end, app=second), desk


async def with_gate(ctx: weft.Context, s: Any) -> Any:
    found = [await s.a()]
    version = await ctx.version("gate", 2)
    found.append(await s.b() if version == 1 else await s.c())
    await ctx.receive("go")
    return [version, *found]


def test_a_new_run_gets_the_latest_version() -> None:
    app = build(with_gate)
    assert Desk(app).across_a_crash(app.registered.workflow_named("flow")()) == [2, "a", "c"]


def test_a_run_that_passed_the_place_before_gets_version_one() -> None:
    async def old(ctx: weft.Context, s: Any) -> Any:
        await s.a()
        await s.b()
        await ctx.receive("go")

    result, _ = edited(old, with_gate)
    assert result == [1, "a", "b"]


def test_an_old_run_that_has_not_come_to_the_place_gets_the_latest() -> None:
    async def old(ctx: weft.Context, s: Any) -> Any:
        await ctx.receive("go")
        await s.a()
        await s.b()

    async def new(ctx: weft.Context, s: Any) -> Any:
        await ctx.receive("go")
        found = [await s.a()]
        return [await ctx.version("gate", 2), *found]

    result, _ = edited(old, new)
    assert result == [2, "a"]


def test_a_version_once_recorded_stays_although_the_code_knows_a_newer_one() -> None:
    async def old(ctx: weft.Context, s: Any) -> Any:
        version = await ctx.version("gate", 2)
        await ctx.receive("go")
        return version

    async def new(ctx: weft.Context, s: Any) -> Any:
        version = await ctx.version("gate", 3)
        await ctx.receive("go")
        return version

    result, _ = edited(old, new)
    assert result == 2


@pytest.mark.parametrize("kind", ["loop", "race", "join", "map", "child", "ask", "gather"])
def test_a_new_run_gets_the_latest_version_whatever_came_before_the_gate(kind: str) -> None:
    """What a fresh run itself recorded must not be taken for the history of older code."""
    app = weft.App("memory://")

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow
    async def child() -> int:
        return 1

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        async def body(n: int) -> weft.Turn[int, None]:
            await work(n)
            return weft.done(None) if n == 2 else weft.again(n + 1)

        match kind:
            case "loop":
                await ctx.loop("rounds", body, state=0)
            case "race":
                await ctx.race("first", {"a": work(1), "b": work(2)})
            case "join":
                await ctx.join("both", {"a": work(1), "b": work(2)})
            case "map":
                await ctx.map("items", work, [1, 2])
            case "child":
                await child()
            case "ask":
                await ctx.ask("ok", title="OK?", timeout="1s", on_timeout="approve")
        return await ctx.version("gate", 2)

    assert Desk(app).run(flow()) == 2


def test_a_resumed_run_gets_the_latest_version_behind_a_finished_loop_and_race() -> None:
    """What is skipped on replay counts as visited."""

    async def code(ctx: weft.Context, s: Any) -> Any:
        async def body(n: int) -> weft.Turn[int, None]:
            await s.a()
            return weft.done(None) if n == 2 else weft.again(n + 1)

        await ctx.loop("rounds", body, state=0)
        await ctx.race("first", {"x": s.a(), "y": s.b()})
        await ctx.join("both", {"x": s.a(), "y": s.b()})
        await ctx.receive("go")
        return await ctx.version("gate", 2)

    result, _ = edited(code, code)
    assert result == 2


def test_each_round_of_a_loop_decides_for_itself() -> None:
    async def old(ctx: weft.Context, s: Any) -> Any:
        async def body(n: int) -> weft.Turn[int, None]:
            await s.a()
            await ctx.receive("go")
            return weft.done(None) if n == 2 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0)

    async def new(ctx: weft.Context, s: Any) -> Any:
        found: list[int] = []

        async def body(n: int) -> weft.Turn[int, list[int]]:
            found.append(await ctx.version("gate", 2))
            await s.a()
            await ctx.receive("go", timeout="1s", default=None)
            return weft.done(found) if n == 2 else weft.again(n + 1)

        return await ctx.loop("rounds", body, state=0)

    first, second = build(old), build(new)

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await calm()

    async def end() -> Any:
        run = second.get("run")
        await run.send("go")
        return await run.result()

    desk = Desk(first)
    desk.play(begin, crash=True)
    assert desk.play(end, app=second) == [1, 2, 2]


def test_a_version_below_one_is_refused() -> None:
    async def code(ctx: weft.Context, s: Any) -> Any:
        await ctx.version("gate", 0)

    app = build(code)
    assert Desk(app).fail(app.registered.workflow_named("flow")()).type == "BadValue"


def test_a_removed_step_is_passed_over_in_old_runs_and_nothing_is_written_in_new_ones() -> None:
    async def old(ctx: weft.Context, s: Any) -> Any:
        await s.a()
        await s.b()
        await ctx.receive("go")

    async def new(ctx: weft.Context, s: Any) -> Any:
        found = await s.a()
        await ctx.removed("b", "step")
        await ctx.receive("go")
        return found

    result, desk = edited(old, new)
    assert result == "a"
    assert "run_held" not in desk.kinds()
    app = build(new)
    fresh = Desk(app)
    assert fresh.across_a_crash(app.registered.workflow_named("flow")()) == "a"
    assert fresh.places() == ["a", "go"]


def test_after_a_removed_step_a_version_gate_does_not_see_it_as_unvisited() -> None:
    async def old(ctx: weft.Context, s: Any) -> Any:
        await s.a()
        await ctx.receive("go")

    async def new(ctx: weft.Context, s: Any) -> Any:
        await ctx.removed("a", "step")
        await ctx.receive("go")
        return await ctx.version("gate", 2)

    result, _ = edited(old, new)
    assert result == 2


@pytest.mark.parametrize("kind", ["sleep", "receive", "loop", "race", "ask", "child"])
def test_every_kind_can_be_removed(kind: str) -> None:
    app, second = weft.App("memory://"), weft.App("memory://")

    async def work(n: int = 0) -> int:
        return n

    def prepare(app: weft.App, *, old: bool) -> None:
        step = app.step(name="work")(work)

        @app.workflow
        async def child() -> int:
            return 1

        @app.workflow
        async def flow(ctx: weft.Context) -> str:
            async def body(n: int) -> weft.Turn[int, None]:
                await step(n)
                return weft.done(None) if n == 2 else weft.again(n + 1)

            if not old:
                await ctx.removed("child" if kind == "child" else "gone", kind)
            elif kind == "sleep":
                await ctx.sleep("1s", name="gone")
            elif kind == "receive":
                await ctx.receive("gone", timeout="1s", default=None)
            elif kind == "loop":
                await ctx.loop("gone", body, state=0)
            elif kind == "race":
                await ctx.race("gone", {"a": step(1), "b": step(2)})
            elif kind == "ask":
                await ctx.ask("gone", title="?", timeout="1s", on_timeout="approve")
            else:
                await child()
            await ctx.receive("go")
            return f"{await ctx.version('gate', 2)}"

    prepare(app, old=True)
    prepare(second, old=False)
    desk = Desk(app)
    flow = app.registered.workflow_named("flow")
    assert desk.across_a_crash(flow(), app=second, seconds=10) == "2"


def test_removing_what_is_of_another_kind_is_divergence() -> None:
    async def old(ctx: weft.Context, s: Any) -> Any:
        await s.a()
        await ctx.receive("go")

    async def new(ctx: weft.Context, s: Any) -> Any:
        await ctx.removed("a", "sleep")
        await ctx.receive("go")

    assert edited(old, new)[0] == "held"


@pytest.mark.parametrize("kind", ["stpe", "", "steps"])
def test_a_kind_that_does_not_exist_is_refused(kind: str) -> None:
    async def code(ctx: weft.Context, s: Any) -> Any:
        await ctx.removed("a", kind)

    app = build(code)
    assert Desk(app).fail(app.registered.workflow_named("flow")()).type in {"BadValue", "UsageError"}


def test_two_declared_versions_of_a_workflow_run_side_by_side() -> None:
    def both(*, new: bool) -> weft.App:
        app = weft.App("memory://")

        @app.workflow(name="flow", version="1")
        async def one(ctx: weft.Context) -> str:
            await ctx.receive("go")
            return "one"

        if new:

            @app.workflow(name="flow", version="2")
            async def two(ctx: weft.Context) -> str:
                await ctx.receive("go")
                return "two"

        return app

    async def begin() -> None:
        await first.start("flow", {}, id="old")

    async def end() -> list[str]:
        await second.start("flow", {}, id="new")
        for name in ("old", "new"):
            await second.get(name).send("go")
        return [await second.get(name).result() for name in ("old", "new")]

    first, second = both(new=False), both(new=True)
    desk = Desk(first)
    desk.play(begin, crash=True)
    assert desk.play(end, app=second) == ["one", "two"]


def test_a_run_of_a_version_that_nobody_has_waits_for_it() -> None:
    def versioned(version: str) -> weft.App:
        app = weft.App("memory://")

        @app.workflow(name="flow", version=version)
        async def flow(ctx: weft.Context) -> str:
            await ctx.receive("go")
            return version

        return app

    async def begin() -> None:
        await first.start("flow", {}, id="run")

    async def other() -> str:
        await second.get("run").send("go")
        await calm()
        return await second.get("run").status()

    async def back() -> Any:
        return await first.get("run").result()

    first, second = versioned("1"), versioned("2")
    desk = Desk(first)
    desk.play(begin)
    assert desk.play(other, app=second) == "running"
    assert desk.play(back) == "1"
