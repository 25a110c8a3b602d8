"""Sleeping: never early, never twice, and a restart does not begin anew."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import BEGIN_MS, calm
from weft.core import events as e


@pytest.mark.parametrize("duration", ["90s", 90, 90.0, timedelta(seconds=90), "PT1M30S"])
def test_a_sleep_takes_its_time(duration: Any) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> float:
        begun = await ctx.now()
        await ctx.sleep(duration)
        return (await ctx.now() - begun).total_seconds()

    assert Desk(app).run(flow()) == pytest.approx(90, abs=0.1)


def test_a_sleep_until_a_moment_ends_then() -> None:
    app = weft.App("memory://")
    then = datetime.fromtimestamp(BEGIN_MS / 1000 + 3600, UTC)

    @app.workflow
    async def flow(ctx: weft.Context) -> datetime:
        await ctx.sleep_until(then)
        return await ctx.now()

    assert timedelta(0) <= Desk(app).run(flow()) - then < timedelta(seconds=1)


def test_a_moment_that_has_passed_is_no_wait() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        await ctx.sleep_until(datetime(2020, 1, 1, tzinfo=UTC))
        await ctx.sleep(0)
        return "up"

    desk = Desk(app)
    assert desk.run(flow()) == "up"
    assert desk.now_ms - BEGIN_MS < 1000


def test_a_moment_without_a_time_zone_is_refused() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep_until(datetime(2030, 1, 1))  # noqa: DTZ001 - the point of the test

    assert Desk(app).fail(flow()).type == "BadValue"


def test_a_restart_sleeps_only_what_is_left() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    async def begin() -> None:
        await app.start(flow(), id="run")
        await asyncio.sleep(3000)

    async def end() -> None:
        await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    desk.play(end)
    assert 3600 <= (desk.now_ms - BEGIN_MS) / 1000 < 3610


def test_a_sleep_that_ended_while_nobody_was_there_ends_at_once() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> None:
        await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    desk.now_ms += 2 * 3_600_000
    before = desk.now_ms
    desk.play(end)
    assert desk.now_ms - before < 1000


def test_the_recorded_deadline_counts_and_not_what_is_passed_again() -> None:
    def build(duration: str) -> weft.App:
        app = weft.App("memory://")

        @app.workflow
        async def flow(ctx: weft.Context) -> None:
            await ctx.sleep(duration)

        return app

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await calm()

    async def end() -> None:
        await second.get("run").result()

    first, second = build("1h"), build("1s")
    desk = Desk(first)
    desk.play(begin, crash=True)
    desk.play(end, app=second)
    assert (desk.now_ms - BEGIN_MS) / 1000 >= 3600


def test_each_sleep_is_recorded_once_and_fires_once() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep("1m")
        await ctx.sleep("1m", name="nap")
        await ctx.sleep("1m")

    desk = Desk(app)
    desk.run(flow())
    assert desk.kinds().count("timer_fired") == 3
    assert desk.places() == ["sleep", "nap", "sleep#2"]


def test_a_clock_that_jumps_forward_ends_a_sleep_and_one_that_jumps_back_does_not_end_it_early() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep("10m")

    async def forward() -> float:
        run = await app.start(flow(), id="forward")
        await calm()
        begun = asyncio.get_running_loop().time()
        desk.clock.skew_ms = 3_600_000
        await run.result()
        return asyncio.get_running_loop().time() - begun

    async def back() -> list[int]:
        run = await app.start(flow(), id="back")
        await calm()
        desk.clock.skew_ms = -300_000
        await run.result()
        return [stored.at for stored in desk.stored("back")]

    desk = Desk(app, settings=weft_settings())
    assert desk.play(forward) < 5
    times = desk.play(back)
    timer = next(event for event in desk.log("back") if isinstance(event, e.TimerSet))
    assert times == sorted(times)
    assert times[-1] >= timer.due


def weft_settings() -> Any:
    from weft.runtime.settings import Settings

    return Settings(poll_seconds=5.0, look_seconds=1.0)


@pytest.mark.parametrize("duration", ["soon", -1, "", float("nan"), None])
def test_what_is_no_duration_fails_by_name(duration: Any) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.sleep(duration)

    assert Desk(app).fail(flow()).code == "value.bad_duration"
