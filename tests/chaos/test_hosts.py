"""Several hosts on one database, in one process: who gets which run and which step, and what happens when one goes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

import weft
from tests import servers
from tests.crash.hosting import QUICK, hosted, hosting
from weft.ports.run_query import RunQuery
from weft.ports.store import Store
from weft.ports.tasks import QueueLimits, QueueRow
from weft.runtime.settings import Settings
from weft.stores import open_store


@pytest.fixture
def url() -> Iterator[str]:
    found = servers.database("hosts")
    servers.empty(found)
    yield found
    servers.empty(found)


def play(scene: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(200):
            await scene

    asyncio.run(timed())


def settings(**changes: Any) -> Settings:
    return msgspec.structs.replace(QUICK, **changes)


CALM = settings(lease_seconds=30.0)
"""For hosts of which none dies: a busy machine must not make one take over the runs of another."""


class Opened:
    """The store beside the hosts, for looking."""

    def __init__(self, url: str) -> None:
        self._store = open_store(url)

    async def __aenter__(self) -> Store:
        await self._store.open()
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


# --- who gets what ------------------------------------------------------------------------------------------------


def test_a_step_goes_to_a_host_that_has_it(url: str) -> None:
    owner, worker = weft.App(url), weft.App(url)
    absent = weft.Group()

    @absent.step
    async def far(n: int) -> str:
        raise AssertionError("never performed here")

    @owner.workflow
    async def order(ctx: weft.Context, n: int) -> str:
        return await far(n)

    @worker.step(name="far")
    async def near(n: int) -> str:
        return f"{n} by the worker"

    async def scene() -> None:
        async with hosting(owner, CALM), hosting(worker, CALM):
            assert await (await owner.start(order(1))).result() == "1 by the worker"

    play(scene())


def test_a_code_run_waits_for_a_host_that_has_its_version(url: str) -> None:
    old, new = weft.App(url), weft.App(url)

    @old.workflow(name="order", version="1")
    async def first(ctx: weft.Context) -> str:
        await ctx.receive("go")
        return "the old way"

    @new.workflow(name="order", version="2")
    async def second(ctx: weft.Context) -> str:
        await ctx.receive("go")
        return "the new way"

    async def scene() -> None:
        async with hosting(old):
            await old.start(first(), id="began-old")
        async with hosting(new), weft.Client(url) as client:
            await new.start(second(), id="began-new")
            for run in ("began-old", "began-new"):
                await client.get(run).send("go", None)
            assert await client.get("began-new").result() == "the new way"
            async with Opened(url) as store:
                row = await store.directory.find(client.get("began-old").id)
                assert row is not None
                assert row.owner is None
            async with hosting(old):
                assert await client.get("began-old").result() == "the old way"

    play(scene())


def test_a_full_host_gives_its_tasks_to_one_that_is_free(url: str) -> None:
    gate = asyncio.Event()
    performed: Counter[str] = Counter()

    def app(name: str) -> weft.App:
        made = weft.App(url)

        @made.step(name="work")
        async def work(n: int) -> int:
            performed[name] += 1
            if name == "small":
                await gate.wait()
            return n

        @made.workflow(name="order")
        async def order(ctx: weft.Context) -> list[int]:
            found = await ctx.join("all", {str(n): work(n) for n in range(6)})
            return sorted(found.values())

        return made

    small, big = app("small"), app("big")

    async def scene() -> None:
        async with hosting(small, settings(slots=1, spill_seconds=0.1, lease_seconds=30.0)), hosting(big, CALM):
            run = await small.start("order", {})
            while performed["big"] < 5:
                await asyncio.sleep(0.01)
            gate.set()
            assert await run.result() == list(range(6))
        assert performed == {"small": 1, "big": 5}

    play(scene())


# --- limits of queues ---------------------------------------------------------------------------------------------


class Counted:
    """How many bodies were at work at once, and when each began. The first ones wait until they are so many."""

    def __init__(self, at_once: int = 0) -> None:
        self.at_once = at_once
        self.now = self.most = 0
        self.began: list[float] = []

    async def body(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        self.began.append(time.monotonic())
        await asyncio.sleep(0.01)
        await _until(lambda: self.most >= self.at_once)
        self.now -= 1


def limited_app(url: str, counted: Counted) -> weft.App:
    app = weft.App(url)

    @app.step(queue="mail")
    async def mail(n: int) -> int:
        await counted.body()
        return n

    @app.workflow
    async def letters(ctx: weft.Context, count: int) -> int:
        return len(await ctx.map("letters", mail, list(range(count)), width=50))

    return app


async def _two_hosts_send(url: str, limits: QueueLimits, count: int) -> Counted:
    counted = Counted(limits.concurrency or 0)
    apps = [limited_app(url, counted) for _ in range(2)]
    async with Opened(url) as store:
        await store.tasks.limit("mail", limits)
        async with hosting(apps[0], CALM), hosting(apps[1], CALM):
            runs = [await app.start("letters", {"count": count}) for app in apps]
            assert [await run.result() for run in runs] == [count, count]
        assert await store.tasks.queues() == [QueueRow(queue="mail", waiting=0, running=0, limits=limits)]
    return counted


def test_no_more_steps_of_a_queue_are_at_work_on_all_hosts_than_it_allows(url: str) -> None:
    async def scene() -> None:
        counted = await _two_hosts_send(url, QueueLimits(concurrency=3), 20)
        assert (len(counted.began), counted.most) == (40, 3)

    play(scene())


def test_no_more_steps_of_a_queue_begin_in_a_stretch_of_time_than_its_rate(url: str) -> None:
    async def scene() -> None:
        start = time.monotonic()
        counted = await _two_hosts_send(url, QueueLimits(rate=10, per_ms=500), 20)
        # Counted from the start: a body may begin long after it was handed out, never before.
        for n, began in enumerate(sorted(counted.began)):
            assert began - start >= n // 10 * 0.5

    play(scene())


# --- coming and going ---------------------------------------------------------------------------------------------


def waiting_app(url: str, owners: Counter[str], name: str) -> weft.App:
    app = weft.App(url)

    @app.step
    async def noted(n: int) -> int:
        owners[name] += 1
        return n

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> int:
        await noted(n)
        await ctx.receive("go")
        return await noted(n)

    return app


def test_a_host_that_stops_hands_its_runs_over_without_a_lease_between(url: str) -> None:
    owners: Counter[str] = Counter()
    first, second = (waiting_app(url, owners, name) for name in ("first", "second"))

    async def scene() -> None:
        async with AsyncExitStack() as stack:
            leaving = await stack.enter_async_context(AsyncExitStack())
            await leaving.enter_async_context(hosting(first, CALM))
            await stack.enter_async_context(hosting(second, CALM))
            runs = [await first.start("order", {"n": n}, id=f"order-{n}") for n in range(20)]
            await _until(lambda: owners["first"] == 20)
            await leaving.aclose()
            assert [run.id for run in runs] == [f"order-{n}" for n in range(20)]
            for n in range(20):
                await second.get(f"order-{n}").send("go", None)
            assert [await second.get(f"order-{n}").result() for n in range(20)] == list(range(20))
        assert owners == {"first": 20, "second": 20}

    play(scene())


async def _until(true: Any) -> None:
    while not true():
        await asyncio.sleep(0.01)


def test_hosts_that_start_together_share_what_a_dead_one_left_and_nothing_is_done_twice(url: str) -> None:
    count = 120
    performed: Counter[int] = Counter()

    def app() -> weft.App:
        made = weft.App(url)

        @made.step(name="once")
        async def once(n: int) -> int:
            performed[n] += 1
            return n

        @made.workflow(name="order")
        async def order(ctx: weft.Context, n: int) -> int:
            first = await once(n)
            await ctx.receive("go")
            return first

        return made

    async def scene() -> None:
        dead = app()
        async with Opened(url) as store, AsyncExitStack() as stack:
            host = await stack.enter_async_context(hosted(dead, settings(idle_seconds=3600.0)))
            for n in range(count):
                await dead.start("order", {"n": n}, id=f"o-{n}")
            await _until(lambda: len(performed) == count)
            await host.settle()
            await host.kill()
            hosts = [app() for _ in range(4)]
            await asyncio.gather(*(stack.enter_async_context(hosting(each)) for each in hosts))
            async with weft.Client(url) as client:
                # Runs that only wait are taken up when there is something for them.
                await asyncio.gather(*(client.get(f"o-{n}").send("note", None) for n in range(count)))
                shares = [0]
                while sum(shares) < count:
                    listed = await store.hosts.list_all()
                    shares = [row.runs for row in listed if row.runs and row.host != host.id]
                await asyncio.gather(*(client.get(f"o-{n}").send("go", None) for n in range(count)))
                results = await asyncio.gather(*(client.get(f"o-{n}").result() for n in range(count)))
            assert results == list(range(count))
            assert set(performed.values()) == {1}
            rows = (await store.directory.search(RunQuery(limit=count))).rows
            assert {row.status for row in rows} == {"completed"}
        assert len(shares) > 1, "one host took everything"

    play(scene())


def test_a_host_whose_loop_stands_still_stops_its_heart_and_loses_its_runs(url: str) -> None:
    owners: Counter[str] = Counter()
    stuck, other = (waiting_app(url, owners, name) for name in ("stuck", "other"))

    async def scene() -> None:
        async with hosted(stuck) as host:
            assert host.heartbeat.is_turning()
            await stuck.start("order", {"n": 1}, id="o-1")
            await _until(lambda: owners["stuck"] == 1)
            watcher = asyncio.get_running_loop().run_in_executor(None, asyncio.run, _taken_over(other, "o-1"))
            await asyncio.sleep(0.2)
            time.sleep(3.0)  # the loop stands still, which is what this is about
            assert not host.heartbeat.is_turning()
            assert await watcher == 1
        assert owners == {"stuck": 1, "other": 1}

    play(scene())


async def _taken_over(app: weft.App, run: str) -> int:
    """Host the app on a loop of its own, and see a run of another host to its end."""
    async with hosting(app), weft.Client(app.url) as client, Opened(app.url) as store:
        local = app.service.local
        assert local is not None
        handle = client.get(run)
        while True:
            row = await store.directory.find(handle.id)
            if row is not None and row.owner == local.host:
                break
            # A run that only waits is taken from a dead host when there is something for it.
            await handle.send("note", None)
            await asyncio.sleep(0.1)
        await handle.send("go", None)
        return int(await handle.result())
