"""Join: all branches at once, all results, and all failures together when every branch has ended."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def app_with_work(seen: list[str]) -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def work(name: str, seconds: float = 0) -> str:
        seen.append(name)
        await asyncio.sleep(seconds)
        if name.startswith("bad"):
            raise OSError(name)
        return name.upper()

    return app, work


def test_a_mapping_gives_a_mapping_in_its_own_order() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> list[tuple[str, str]]:
        found = await ctx.join("both", {"y": work("a", 5), "x": work("b", 1)})
        return list(found.items())

    desk = Desk(app)
    assert desk.run(flow()) == [("y", "A"), ("x", "B")]
    assert desk.places() == ["both/y/work", "both/x/work"]


def test_calls_in_a_row_give_a_tuple() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        a, b, c = await ctx.join("three", work("a"), work("b"), work("c"))
        return f"{a}{b}{c}"

    assert Desk(app).run(flow()) == "ABC"


def test_branches_run_at_once() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.join("many", {str(n): work(str(n), 60) for n in range(10)})

    desk = Desk(app)
    desk.run(flow())
    times = [stored.at for stored in desk.stored()]
    assert times[-1] - times[0] < 61_000


def test_an_empty_join_is_empty() -> None:
    app, _ = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> dict[str, Any]:
        return await ctx.join("none", {})

    assert Desk(app).run(flow()) == {}


def test_failures_come_together_by_name_when_all_have_ended() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> dict[str, Any]:
        try:
            await ctx.join("all", {"a": work("bad1", 1), "b": work("fine", 30), "c": work("bad2", 2)})
        except weft.BranchesFailed as failed:
            kinds = {name: type(error).__name__ for name, error in failed.errors.items()}
            return {"kinds": kinds, "group": isinstance(failed, ExceptionGroup), "text": str(failed)}
        return {}

    desk = Desk(app)
    found = desk.run(flow())
    assert found["kinds"] == {"a": "StepFailed", "c": "StepFailed"}
    assert found["group"]
    assert "2 of 3 branches failed" in found["text"]
    times = [stored.at for stored in desk.stored()]
    assert times[-1] - times[0] >= 30_000


def test_failures_can_be_caught_with_except_star() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        caught = 0
        try:
            await ctx.join("all", {"a": work("bad1"), "b": work("bad2")})
        except* weft.StepFailed as group:
            caught = len(group.exceptions)
        return caught

    assert Desk(app).run(flow()) == 2


def test_a_join_goes_on_after_a_crash_with_what_was_done() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> dict[str, str]:
        async def slow() -> str:
            await ctx.receive("go")
            return str(await work("late"))

        return await ctx.join("both", {"quick": work("quick"), "slow": slow()})

    assert Desk(app).across_a_crash(flow()) == {"quick": "QUICK", "slow": "LATE"}
    assert seen == ["quick", "late"]


def test_a_failed_branch_stays_failed_after_a_crash() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        async def slow() -> None:
            await ctx.receive("go")

        try:
            await ctx.join("both", {"bad": work("bad"), "slow": slow()})
        except weft.BranchesFailed as failed:
            return sorted(failed.errors)
        return []

    assert Desk(app).across_a_crash(flow()) == ["bad"]
    assert seen == ["bad"]


def test_branches_may_wait_for_anything() -> None:
    app, _ = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> list[Any]:
        async def sleeper() -> str:
            await ctx.sleep("1m")
            return "slept"

        async def listener() -> Any:
            return await ctx.receive("n")

        async def asker() -> bool:
            return (await ctx.ask("ok", title="OK?")).approved

        return list(await ctx.join("waits", sleeper(), listener(), asker()))

    async def scene() -> Any:
        run = await app.start(flow())
        await calm()
        await run.send("n", 4)
        await run.decide("waits/2/ok", approved=True)
        return await run.result()

    assert Desk(app).play(scene) == ["slept", 4, True]


def test_a_join_with_a_timeout_stops_its_branches() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.join("slow", {"a": work("a", 3600), "b": work("b", 1)}, timeout="1m")
        except weft.TimedOut:
            return "late"
        return "?"

    desk = Desk(app)
    assert desk.run(flow()) == "late"
    assert "entry_cancelled" in desk.kinds()
    times = [stored.at for stored in desk.stored()]
    assert times[-1] - times[0] < 61_000


def test_the_timeout_of_a_join_replays() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.join("slow", {"a": work("a", 3600)}, timeout="1m")
        except weft.TimedOut:
            await ctx.receive("go")
            return "late"
        return "?"

    assert Desk(app).across_a_crash(flow(), seconds=100) == "late"


def test_joins_nest() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        async def inner(n: str) -> Any:
            return await ctx.join("inner", {"p": work(f"{n}p"), "q": work(f"{n}q")})

        return await ctx.join("outer", {"a": inner("a"), "b": inner("b")})

    desk = Desk(app)
    assert desk.run(flow()) == {"a": {"p": "AP", "q": "AQ"}, "b": {"p": "BP", "q": "BQ"}}
    assert "outer/a/inner/p/work" in desk.places()


def test_the_same_name_twice_counts_up() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.join("two", {"a": work("a")})
        await ctx.join("two", {"a": work("a")})

    desk = Desk(app)
    desk.run(flow())
    assert desk.places() == ["two/a/work", "two#2/a/work"]


@pytest.mark.parametrize("key", ["", "a/b", "~1", "a#1"])
def test_a_branch_whose_name_could_be_another_place_is_refused(key: str) -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        call = work("a")
        try:
            await ctx.join("two", {key: call})
        finally:
            call.close()

    assert Desk(app).fail(flow()).code == "value.bad_name"


def test_cancelling_a_run_cancels_the_branches() -> None:
    app, _ = app_with_work([])
    stopped: list[str] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def wait(name: str) -> None:
            try:
                await ctx.receive("never")
            except asyncio.CancelledError:
                stopped.append(name)
                raise

        await ctx.join("two", {"a": wait("a"), "b": wait("b")})

    async def scene() -> None:
        run = await app.start(flow())
        await calm()
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()

    Desk(app).play(scene)
    assert stopped == ["a", "b"]
