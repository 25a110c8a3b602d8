"""Time, chance and ids are recorded once; attributes make runs findable."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import BEGIN_MS, calm


def test_now_random_and_uuid_are_the_same_on_every_replay() -> None:
    app = weft.App("memory://")
    seen: list[tuple[Any, ...]] = []

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        found = (await ctx.now(), await ctx.random(), await ctx.uuid(), await ctx.now(), await ctx.random())
        seen.append(found)
        await ctx.receive("go")

    Desk(app).across_a_crash(flow(), seconds=100)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    now, chance, name, _, other = seen[0]
    assert now == datetime.fromtimestamp(BEGIN_MS / 1000, UTC)
    assert 0 <= chance < 1
    assert chance != other
    assert isinstance(name, UUID)


def test_random_numbers_are_spread() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[float]:
        return [await ctx.random() for _ in range(200)]

    found = Desk(app).run(flow())
    assert len(set(found)) == 200
    assert 0.35 < sum(found) / 200 < 0.65


def test_the_time_never_goes_back_within_a_run() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> bool:
        first = await ctx.now()
        await ctx.receive("go")
        return await ctx.now() >= first

    async def scene() -> bool:
        run = await app.start(flow(), id="run")
        await calm()
        desk.clock.skew_ms = -3_600_000
        await run.send("go")
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene)
    times = [stored.at for stored in desk.stored()]
    assert times == sorted(times)


def test_the_run_knows_its_id() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return f"{ctx.run_id} {weft.context().run_id}"

    assert Desk(app).run(flow(), id="mine") == "mine mine"


def test_there_is_no_context_outside_a_workflow() -> None:
    with pytest.raises(weft.NoContext):
        weft.context()
    with pytest.raises(weft.NoContext):
        weft.task()


async def found(app: weft.App, **query: Any) -> list[str]:
    return [run.id async for run in app.list(**query)]


def test_attributes_given_at_the_start_and_set_by_the_code_find_a_run() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context, n: int) -> None:
        await ctx.set(n=n, kind="order", draft=None)
        await ctx.receive("go")

    async def scene() -> None:
        for n in range(3):
            await app.start(flow(n), id=f"r{n}", attributes={"customer": f"c{n % 2}", "draft": True})
        await calm()
        assert await found(app, where={"kind": "order"}) == ["r2", "r1", "r0"]
        assert await found(app, where={"n": 1}) == ["r1"]
        assert await found(app, where={"customer": "c0", "n": 2}) == ["r2"]
        assert await found(app, where={"draft": True}) == []
        assert await found(app, where={"n": "1"}) == []

    Desk(app).play(scene)


def test_set_is_recorded_once() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await ctx.set(stage="one")
        await ctx.set(stage="two")
        await ctx.receive("go")

    desk = Desk(app)
    desk.across_a_crash(flow())
    assert desk.kinds().count("attributes_set") == 2
    assert desk.state().attributes == {"stage": "two"}


@pytest.mark.parametrize("attributes", [{"a": object()}, {"a": float("nan")}, {"a\0": 1}, {"a": "b\0"}, {"\ud800": 1}])
def test_attributes_that_no_store_can_hold_are_refused_at_the_door(attributes: dict[str, Any]) -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context, *, set_them: bool) -> None:
        if set_them:
            await ctx.set(**attributes)

    async def scene() -> None:
        with pytest.raises(weft.BadValue):
            await app.start(flow(set_them=False), id="run", attributes=attributes)
        assert await found(app) == []

    Desk(app).play(scene)
    assert Desk(app).fail(flow(set_them=True)).type == "BadValue"


def test_runs_are_listed_by_workflow_status_and_time_with_the_newest_first() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def quick() -> int:
        return 1

    @app.workflow
    async def slow(ctx: weft.Context) -> None:
        await ctx.receive("go")

    async def scene() -> None:
        for n in range(250):
            await app.start(quick(), id=f"q{n:03}")
        await asyncio.sleep(10)
        await app.start(slow(), id="s")
        await asyncio.sleep(0.01)
        everything = await found(app)
        assert len(everything) == 251
        assert everything[0] == "s"
        assert len(set(everything)) == 251
        assert await found(app, workflow=slow) == ["s"]
        assert await found(app, workflow="slow", status="running") == ["s"]
        assert len(await found(app, status="completed")) == 250
        since = datetime.fromtimestamp(desk.clock.now_ms() / 1000, UTC) - timedelta(seconds=5)
        assert await found(app, since=since) == ["s"]

    desk = Desk(app)
    desk.play(scene, crash=True)
