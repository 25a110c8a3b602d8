"""Race: the first branch that succeeds wins; losers are cancelled, and what they had recorded leaves the state."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def app_with_work(seen: list[str]) -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def work(name: str, seconds: float = 0) -> str | None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            seen.append(f"{name} stopped")
            raise
        seen.append(name)
        if name.startswith("bad"):
            raise OSError(name)
        return None if name == "none" else name.upper()

    return app, work


def test_the_first_that_succeeds_wins_and_the_others_are_stopped() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> tuple[str, Any]:
        won = await ctx.race("first", {"slow": work("slow", 60), "quick": work("quick", 1)})
        return won.name, won.value

    desk = Desk(app)
    assert tuple(desk.run(flow())) == ("quick", "QUICK")
    assert seen == ["quick", "slow stopped"]


def test_nothing_of_the_losers_is_left_in_the_state() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def slow() -> None:
            for n in range(5):
                await work(str(n))
            await ctx.sleep("1h")

        await ctx.race("first", {"slow": slow(), "quick": work("quick", 1)})
        await ctx.receive("go")

    desk = Desk(app)
    desk.across_a_crash(flow(), seconds=5)
    keys = [entry.key for entry in desk.state().entries.values()]
    assert keys == ["first/quick/work", "first", "go"]


def test_a_failure_does_not_win() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return (await ctx.race("first", {"bad": work("bad"), "fine": work("fine", 5)})).name

    assert Desk(app).run(flow()) == "fine"


def test_when_all_fail_all_failures_are_raised() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        try:
            await ctx.race("first", {"a": work("bad1"), "b": work("bad2", 1)})
        except weft.BranchesFailed as failed:
            await ctx.receive("go")
            return sorted(failed.errors)
        return []

    assert Desk(app).across_a_crash(flow(), seconds=5) == ["a", "b"]


def test_none_can_win() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        won = await ctx.race("first", {"none": work("none"), "slow": work("slow", 60)})
        await ctx.receive("go")
        return [won.name, won.value]

    assert Desk(app).across_a_crash(flow(), seconds=5) == ["none", None]


def test_the_winner_stays_the_winner_on_replay_and_losers_are_not_begun_again() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        won = await ctx.race("first", {"slow": work("slow", 60), "quick": work("quick", 1)})
        await ctx.receive("go")
        return won.name

    assert Desk(app).across_a_crash(flow(), seconds=5) == "quick"
    assert seen == ["quick", "slow stopped"]


def test_a_loser_that_shrugs_off_its_cancellation_does_not_win() -> None:
    """First to finish wins, whatever the order of declaration and whatever the loser makes of being told."""
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def stubborn() -> str:
            try:
                await ctx.sleep("1h")
            except asyncio.CancelledError:
                return "I won after all"
            return "slow"

        return (await ctx.race("first", {"stubborn": stubborn(), "quick": work("quick", 1)})).name

    assert Desk(app).run(flow()) == "quick"


def test_a_loser_may_clean_up_with_a_step() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def tidy() -> None:
            try:
                await ctx.sleep("1h")
            finally:
                await work("cleaned")

        won = await ctx.race("first", {"tidy": tidy(), "quick": work("quick", 1)})
        await ctx.receive("go")
        return won.name

    assert Desk(app).across_a_crash(flow(), seconds=5) == "quick"
    assert seen == ["quick", "cleaned"]


def test_a_race_against_time() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def alarm() -> None:
            await ctx.sleep("5s")

        return (await ctx.race("work", {"work": work("w", 60), "alarm": alarm()})).name

    assert Desk(app).run(flow()) == "alarm"


def test_a_race_with_a_timeout_raises_timed_out_live_and_on_replay() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await ctx.race("work", {"a": work("a", 60), "b": work("b", 70)}, timeout="5s")
        except weft.TimedOut:
            await ctx.receive("go")
            return "late"
        return "?"

    assert Desk(app).across_a_crash(flow(), seconds=10) == "late"
    assert seen == ["a stopped", "b stopped"]


def test_a_message_lost_to_a_race_is_there_for_the_next_wait() -> None:
    app, _ = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        async def nap() -> None:
            await ctx.sleep("1s")

        await ctx.race("first", {"wait": ctx.receive("n"), "nap": nap()})
        return await ctx.receive("n")

    async def scene() -> Any:
        run = await app.start(flow())
        await asyncio.sleep(5)
        await run.send("n", "kept")
        return await run.result()

    assert Desk(app).play(scene) == "kept"


def test_a_child_that_loses_is_cancelled() -> None:
    app, _ = app_with_work([])

    @app.workflow
    async def child(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def nap() -> None:
            await ctx.sleep("1s")

        return (await ctx.race("first", {"child": child(), "nap": nap()})).name

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await run.result()
        await asyncio.sleep(10)
        return await app.get("run.first/child/child").status()

    assert Desk(app).play(scene) == "cancelled"


def test_a_race_without_branches_is_refused() -> None:
    app, _ = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.race("none", {})

    assert Desk(app).fail(flow()).type == "UsageError"


def test_races_nest_and_repeat() -> None:
    app, work = app_with_work([])

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        async def inner() -> str:
            return (await ctx.race("inner", {"p": work("p", 2), "q": work("q", 1)})).name

        first = await ctx.race("outer", {"a": inner(), "b": work("b", 60)})
        second = await ctx.race("outer", {"a": inner(), "b": work("b", 0)})
        await ctx.receive("go")
        return [first.value, second.name]

    desk = Desk(app)
    assert desk.across_a_crash(flow(), seconds=10) == ["q", "b"]
    assert "outer#2" in desk.places()


def test_a_crash_in_the_middle_of_a_race_changes_nothing() -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        async def steps(name: str, nap: str) -> str:
            await work(name)
            await ctx.sleep(nap)
            return name

        return (await ctx.race("first", {"a": steps("a", "1m"), "b": steps("b", "30s")})).name

    async def begin() -> None:
        await app.start(flow(), id="run")
        await asyncio.sleep(10)

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == "b"
    assert seen == ["a", "b"]


def test_a_winner_that_the_code_no_longer_has_is_divergence() -> None:
    def build(names: list[str]) -> weft.App:
        app = weft.App("memory://")

        @app.step
        async def work(name: str) -> str:
            return name

        @app.workflow
        async def flow(ctx: weft.Context) -> None:
            await ctx.race("first", {name: work(name) for name in names})
            await ctx.receive("go")

        return app

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await calm()

    async def look() -> str:
        await calm()
        return await second.get("run").status()

    first, second = build(["a", "b"]), build(["b", "c"])
    desk = Desk(first)
    desk.play(begin, crash=True)
    assert desk.play(look, app=second) == "held"


@pytest.mark.parametrize("seconds", [0, 5])
def test_cancelling_the_run_reaches_the_branches(seconds: float) -> None:
    seen: list[str] = []
    app, work = app_with_work(seen)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.race("first", {"a": work("a", 60), "b": work("b", 70)})

    async def scene() -> None:
        run = await app.start(flow())
        await asyncio.sleep(seconds)
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()
        await calm()

    Desk(app).play(scene)
    assert all(name.endswith("stopped") for name in seen)
