"""Runs that a dead host left behind: those with something to do go on at once, those that only wait are left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.ports.new_run import NewRun
from weft.ports.store import NEVER, Append, Outcome, Store, StoredEvent
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.host import Host
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.runtime.surroundings import Surroundings
from weft.runtime.worker.executor import PoolExecutor
from weft.stores import open_store

DEAD = HostId("dead")
SETTINGS = Settings(poll_seconds=0.005)


def office() -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def add(number: int) -> int:
        return number + 1

    @app.workflow
    async def wait(ctx: weft.Context) -> str:
        return await ctx.receive("go", str)

    @app.workflow
    async def nap(ctx: weft.Context, seconds: float) -> str:
        await ctx.sleep(seconds)
        return "rested"

    @app.workflow
    async def work(ctx: weft.Context) -> int:
        return await add(1)

    return app


@asynccontextmanager
async def hosted(app: weft.App, url: str, settings: Settings = SETTINGS, *, dies: bool = False) -> AsyncIterator[Host]:
    """A host over the store. ``dies``: it ends without a word, and leaves its runs as they are."""
    store = open_store(url)
    await store.open()
    given = Surroundings(store=store, clock=SystemClock(), ids=TimeIds(), executor=PoolExecutor(), settings=settings)
    service = RunService(store, given.clock, given.ids)
    host = Host(given, app.catalogue(), service)
    app.bind(service)
    await host.start()
    try:
        yield host
    finally:
        await (host.kill() if dies else host.stop())
        app.bind(None)
        await store.close()


async def leave_behind(store: Store, events: Sequence[StoredEvent], count: int, *, idle_until: int | None) -> None:
    """Runs of a host that is gone, each with these events."""
    for start in range(0, count, 1_000):
        batch = [_waiting(n, events, idle_until) for n in range(start, min(count, start + 1_000))]
        assert set(await store.log.commit(batch, DEAD)) == {Outcome.ACCEPTED}


def _waiting(number: int, events: Sequence[StoredEvent], idle_until: int | None) -> Append:
    uid = RunUid(f"{number:032x}")
    new = NewRun(
        uid=uid,
        id=RunId(f"w{number}"),
        workflow="wait",
        version="1",
        style="code",
        created_at=Millis(1),
        owner=DEAD,
    )
    idle = None if idle_until is None else Millis(idle_until)
    return Append(uid=uid, epoch=Epoch(1), seq=Seq(0), events=events, create=new, status="running", idle_until=idle)


async def model(app: weft.App, host: Host) -> Sequence[StoredEvent]:
    """What the log of a run holds that waits for "go"."""
    handle = await app.start("wait", {}, id="model")
    row = await host.store.directory.find(RunId(handle.id))
    assert row is not None
    return await host.store.log.events(row.uid, after=Seq(0), limit=10)


@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.proof)])
def test_what_only_waits_is_not_read_back_and_new_runs_go_first(tmp_path: Path, count: int) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def scenario() -> None:
        app = office()
        async with hosted(app, url) as host:
            await leave_behind(host.store, await model(app, host), count, idle_until=NEVER)
        async with hosted(app, url) as host:
            assert len(host.runs.actors) == 0
            assert await (await app.start("work", {}, id="new")).result() == 2
            assert len(host.runs.actors) == 0

            await app.get("w7").send("go", "now")
            assert await app.get("w7").result(timeout="200s") == "now"
            row = await host.store.directory.find(RunId("w8"))
            assert row is not None
            assert (row.owner, row.epoch) == (DEAD, 1)

    asyncio.run(scenario())


def test_new_runs_have_places_that_those_read_back_never_take(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    settings = Settings(poll_seconds=0.005, resident_max=20, idle_seconds=3600)

    async def scenario() -> None:
        app = office()
        async with hosted(app, url) as host:
            await leave_behind(host.store, await model(app, host), 100, idle_until=None)
        async with hosted(app, url, settings) as host:
            assert len(host.runs.actors) == 20
            assert host.claims.backlog
            handle = await app.start("work", {}, id="new")
            row = await host.store.directory.find(RunId("new"))
            assert row is not None
            assert row.seq > 0, "it has begun, and does not stand in line behind the others"
            assert await handle.result() == 2

    asyncio.run(scenario())


def test_a_wait_of_a_dead_host_ends_in_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def scenario() -> None:
        app = office()
        async with hosted(app, url, dies=True):
            await app.start("nap", {"seconds": 0.3}, id="short")
            await app.start("nap", {"seconds": 3600}, id="long")
            await app.start("wait", {}, id="mail")
        async with hosted(app, url) as host:
            assert await app.get("short").result(timeout="200s") == "rested"
            assert not host.runs.actors
            rows = [await host.store.directory.find(RunId(name)) for name in ("long", "mail")]
            assert [row.idle_until is not None and row.idle_until > NEVER // 2 for row in rows if row] == [False, True]

    asyncio.run(scenario())


def test_a_host_that_stops_performs_the_task_whose_row_it_has_just_taken(tmp_path: Path) -> None:
    app, began, url = weft.App("memory://"), list[str](), f"sqlite:///{tmp_path}/weft.db"
    go, took, answers = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.step(limit=weft.Limit(concurrency=1), effect="irreversible")
    async def call(name: str) -> str:
        began.append(name)
        await go.wait()
        return name

    @app.workflow
    async def calling(ctx: weft.Context, name: str) -> str:
        return await call(name)

    async def scenario() -> None:
        async with hosted(app, url) as host:
            take = host.store.tasks.take

            async def slowly(*arguments: Any, **options: Any) -> Any:
                taken = await take(*arguments, **options)
                if taken:
                    took.set()
                    await answers.wait()
                return taken

            host.store.tasks.take = slowly  # type: ignore[method-assign]
            runs = [await app.start("calling", {"name": name}, id=name) for name in "ab"]
            go.set()
            assert await runs[0].result(timeout=60) == "a"
            await asyncio.wait_for(took.wait(), 60)
            asyncio.get_running_loop().call_later(0.01, answers.set)  # while it stops
        async with hosted(app, url):
            assert await app.get("b").result(timeout=60) == "b"
        assert began == ["a", "b"]

    asyncio.run(scenario())


def test_a_host_that_stops_hands_in_the_results_of_tasks_for_other_hosts(tmp_path: Path) -> None:
    app, url = weft.App("memory://"), f"sqlite:///{tmp_path}/weft.db"
    began, go, asked, answers, settled = (
        asyncio.Event(),
        asyncio.Event(),
        asyncio.Event(),
        asyncio.Event(),
        list[bool](),
    )

    @app.step(limit=weft.Limit(concurrency=1))
    async def call() -> str:
        began.set()
        await go.wait()
        return "done"

    @app.workflow
    async def calling(ctx: weft.Context) -> str:
        return await call()

    async def scenario() -> None:
        async with hosted(app, url) as host:
            settle = host.store.tasks.settle

            async def slowly(*arguments: Any) -> bool:
                asked.set()
                await answers.wait()
                settled.append(await settle(*arguments))
                return settled[-1]

            host.store.tasks.settle = slowly  # type: ignore[method-assign]
            await app.start("calling", {}, id="r")
            await asyncio.wait_for(began.wait(), 60)
            (actor,) = host.runs.actors.values()
            host.runs.remove(actor)  # as if another host had claimed it
            go.set()
            await asyncio.wait_for(asked.wait(), 60)
            asyncio.get_running_loop().call_later(0.01, answers.set)  # while it stops
        assert settled == [True]

    asyncio.run(scenario())
