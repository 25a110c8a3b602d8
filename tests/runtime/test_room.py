"""Memory is bounded: runs make room for others, leave nothing behind, and none is forgotten."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

import weft
from tests import scale
from weft.errors import StoreError
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host
from weft.runtime.loop_share import LOADS_AT_ONCE
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.stores import open_store

RESIDENT_MAX = 20


def crowd() -> tuple[weft.App, Counter[str]]:
    app = weft.App("memory://")
    begun: Counter[str] = Counter()

    @app.workflow
    async def wait(ctx: weft.Context, n: int) -> str:
        begun[ctx.run_id] += 1
        return f"{n}: {await ctx.receive('go', str)}"

    return app, begun


async def hosted(app: weft.App) -> tuple[Host, RunService]:
    store = open_store("memory://")
    await store.open()
    settings = Settings(resident_max=RESIDENT_MAX, poll_seconds=0.005)
    given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=PoolExecutor(), settings=settings)
    service = RunService(store, given.clock, given.ids)
    host = Host(given, app.catalogue(), service)
    app.bind(service)
    await host.start()
    return host, service


async def until(condition: object) -> None:
    async with asyncio.timeout(200):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.002)


def test_more_runs_than_memory_holds_all_get_their_turn() -> None:
    async def scenario() -> None:
        app, begun = crowd()
        host, _ = await hosted(app)
        handles = [await app.start("wait", {"n": n}, id=f"r{n}") for n in range(5 * RESIDENT_MAX)]
        await until(lambda: len(begun) == len(handles))
        await until(lambda: len(host.runs.actors) <= RESIDENT_MAX)
        for handle in handles:
            await handle.send("go", "now")
        results = [await handle.result(timeout=120) for handle in handles]
        assert results == [f"{n}: now" for n in range(len(handles))]
        await host.stop()

    asyncio.run(scenario())


async def plainly(ctx: weft.Context) -> None:
    await ctx.receive("a")


async def gathered(ctx: weft.Context) -> None:
    await asyncio.gather(ctx.receive("a"), ctx.receive("b"))


async def gathered_twice(ctx: weft.Context) -> None:
    await asyncio.gather(asyncio.gather(ctx.receive("a"), ctx.receive("b")), ctx.receive("c"))


async def grouped(ctx: weft.Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.receive("a"))
        group.create_task(ctx.receive("b"))


async def waited(ctx: weft.Context) -> None:
    await asyncio.wait([asyncio.create_task(ctx.receive("a")), asyncio.create_task(ctx.receive("b"))])


async def shielded(ctx: weft.Context) -> None:
    await asyncio.shield(asyncio.gather(ctx.receive("a"), ctx.receive("b")))


async def after_a_task(ctx: weft.Context) -> None:
    await asyncio.create_task(ctx.receive("a"))


WAYS_TO_WAIT = [plainly, gathered, gathered_twice, grouped, waited, shielded, after_a_task]


@pytest.mark.parametrize("way", scale.sample(2, WAYS_TO_WAIT), ids=lambda way: way.__name__)
def test_a_run_that_leaves_memory_leaves_nothing_for_the_collector(
    way: Callable[[weft.Context], Awaitable[None]],
) -> None:
    async def scenario() -> None:
        app = weft.App("memory://")
        app.workflow(way)
        host, _ = await hosted(app)
        for n in range(RESIDENT_MAX - 1):
            await app.start(way.__name__, {}, id=f"r{n}")
        await until(lambda: len(host.runs.actors) == RESIDENT_MAX - 1)
        gc.collect()
        gc.disable()
        try:
            await host.releaser.release(list(host.runs.actors.values()))
            assert not host.runs.actors
            assert gc.collect() == 0
        finally:
            gc.enable()
        await host.stop()

    asyncio.run(scenario())


def test_only_a_host_that_goes_on_complains_of_a_store_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async def away() -> None:
        raise StoreError("away")

    async def scenario() -> None:
        app, _ = crowd()
        host, _ = await hosted(app)
        for running in (True, False):
            host.status.running = running
            host.background.spawn(away())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert ("a background task failed" in caplog.text) is running
            caplog.clear()
        host.status.running = True
        await host.stop()

    asyncio.run(scenario())


def test_the_children_of_one_run_leave_room_for_others() -> None:
    """They wait at rest for idle runs to leave memory, and a new run is not behind them."""

    async def scenario() -> None:
        app, begun = crowd()

        @app.workflow
        async def family(ctx: weft.Context, count: int) -> int:
            children = [await ctx.spawn("wait", {"n": n}, id=f"c{n}") for n in range(count)]
            return len([await child.result() for child in children])

        host, _ = await hosted(app)
        count = 10 * RESIDENT_MAX
        parent = await app.start("family", {"count": count}, id="family")
        while len(begun) < count:
            assert len(host.runs.actors) <= RESIDENT_MAX + LOADS_AT_ONCE
            await asyncio.sleep(0)
        for n in range(count):
            await app.get(f"c{n}").send("go", "now")
        assert await parent.result(timeout="60s") == count
        assert set(begun) == {f"c{n}" for n in range(count)}
        await host.stop()

    asyncio.run(scenario())
