"""A host that lives says so; one whose loop stands still does not, and one that was away asks before it begins."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import weft
from tests import servers
from tests.crash.hosting import QUICK, hosting
from weft.core.ids import HostId, Millis
from weft.ports.boundary import set_hook
from weft.ports.clock import Clock
from weft.runtime.clock import StoreClock
from weft.stores.memory import MemoryStore
from weft.stores.postgres import PostgresStore
from weft.stores.silent_hosts import SilentHosts

HOST = HostId("h")


@pytest.fixture
def url() -> str:
    found = servers.database("heart")
    servers.empty(found)
    return found


class NodeStates(Clock):
    """A clock that stands still."""

    def now_ms(self) -> Millis:
        return Millis(1_000)

    def monotonic(self) -> float:
        return 7.0


def test_time_is_the_stores_time() -> None:
    store = MemoryStore()
    store.offset_ms = 500

    assert StoreClock(NodeStates(), store).now_ms() == 1_500
    assert StoreClock(NodeStates(), store).monotonic() == 7.0


def test_what_a_workflow_calls_now_is_the_servers_time(url: str) -> None:
    app = weft.App(url)

    @app.workflow
    async def ask(ctx: weft.Context) -> float:
        return (await ctx.now()).timestamp()

    async def scene() -> float:
        async with hosting(app):
            store = app.service.store
            assert isinstance(store, PostgresStore)
            assert abs(store.offset_ms) < 1_000
            # As if this machine's clock were an hour slow; no beat of a host is quick enough to find out.
            store.hosts.offset_ms = 3_600_000
            store.hosts._round_trip_ms = 0.0
            return await (await app.start(ask())).result() - time.time()

    assert 3_590 < asyncio.run(scene()) < 3_610


def test_the_quickest_answer_says_what_the_time_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        store = PostgresStore(url)
        await store.open()
        hosts = store.hosts
        now = 1_800_000_000.0
        monkeypatch.setattr("weft.stores.postgres.hosts.time", SimpleNamespace(time=lambda: now))
        hosts._read_at = 0.0
        hosts.record_server_time(now - 0.010, (now - 0.005 + 5.0) * 1000)
        assert abs(hosts.offset_ms - 5_000) < 20
        # It took a second, so it may be wrong by half of one.
        hosts.record_server_time(now - 1.0, (now + 9.0) * 1000)
        assert abs(hosts.offset_ms - 5_000) < 20
        await store.close()

    asyncio.run(scene())


def test_what_others_saw_of_a_standstill_counts() -> None:
    observer = SilentHosts()

    assert observer.measure_silence(HOST, beats=5, monotonic=100.0, known_ms=3_000) == 3_000
    assert observer.measure_silence(HOST, beats=5, monotonic=101.0, known_ms=3_000) == 4_000
    assert observer.measure_silence(HOST, beats=5, monotonic=102.0, known_ms=9_000) == 9_000
    assert observer.measure_silence(HOST, beats=6, monotonic=103.0) == 0


def test_time_without_a_server_is_no_standstill() -> None:
    observer = SilentHosts()
    observer.measure_silence(HOST, beats=5, monotonic=100.0)
    assert observer.measure_silence(HOST, beats=5, monotonic=102.0) == 2_000

    observer.lost_sight()

    assert observer.measure_silence(HOST, beats=5, monotonic=200.0) == 2_000
    assert observer.measure_silence(HOST, beats=5, monotonic=201.0) == 3_000


def test_an_observer_that_dies_leaves_what_it_saw_to_the_next(url: str) -> None:
    async def scene() -> None:
        hosts = [PostgresStore(url) for _ in range(3)]
        for store in hosts:
            await store.open()
        silent, first, second = (store.hosts for store in hosts)
        await silent.join(HOST, lease_ms=10_000)
        await first.find_dead(monotonic=0.0)
        assert list(await first.find_dead(monotonic=6.0)) == []
        # Of the first nothing is heard any more; the second has a clock of its own, and sees the host for four seconds.
        assert list(await second.find_dead(monotonic=1_000.0)) == []
        assert list(await second.find_dead(monotonic=1_003.9)) == []
        assert list(await second.find_dead(monotonic=1_004.1)) == [HOST]
        await silent.beat(HOST)
        assert list(await second.find_dead(monotonic=1_005.0)) == []
        for store in hosts:
            await store.close()

    asyncio.run(scene())


def test_what_a_frozen_host_had_in_line_is_not_begun_when_others_have_its_run(url: str) -> None:
    """SIGSTOP, in effect: its loop stands still, its run is taken over and ends, and then it wakes."""
    frozen, other = weft.App(url), weft.App(url)
    performed: list[str] = []

    def declare(app: weft.App, name: str) -> None:
        @app.step(name="act")
        async def act(n: int) -> int:
            performed.append(name)
            return n

        @app.workflow(name="order")
        async def order(ctx: weft.Context) -> int:
            await ctx.receive("go")
            return await act(1)

    declare(frozen, "frozen")
    declare(other, "other")

    ended: list[int] = []

    def freeze(name: str) -> None:
        """Between the commit and the first line of the body, of all moments."""
        if name == "effect.before" and threading.current_thread() is threading.main_thread() and not ended:
            ended.append(asyncio.run_coroutine_threadsafe(_ends_elsewhere(other, "o-1"), loop).result(200))

    async def scene() -> None:
        async with hosting(frozen):
            run = await frozen.start("order", {}, id="o-1")
            set_hook(freeze)
            await run.send("go", None)
            assert await run.result() == 1
            await asyncio.sleep(2 * QUICK.lease_seconds)

    with loop_apart() as loop:
        try:
            asyncio.run(scene())
        finally:
            set_hook(None)
    assert (ended, performed) == ([1], ["other"])


def test_a_retry_that_falls_due_in_a_frozen_host_is_not_begun_when_others_have_its_run(url: str) -> None:
    """It is handed out only after the host woke, by what the host knew before."""
    frozen, other = weft.App(url), weft.App(url)
    performed: list[str] = []

    def declare(app: weft.App, name: str) -> None:
        @app.step(name="act", retries=weft.Retry(3, delay=10 * QUICK.lease_seconds))
        async def act(n: int) -> int:
            performed.append(name)
            if weft.task().attempt == 1:
                raise RuntimeError("busy")
            return n

        @app.workflow(name="order")
        async def order(ctx: weft.Context) -> int:
            return await act(1)

    declare(frozen, "frozen")
    declare(other, "other")
    ended: list[int] = []
    waiting: list[asyncio.TimerHandle] = []

    def stand_still() -> None:
        ended.append(asyncio.run_coroutine_threadsafe(_ends_elsewhere(other, "o-1"), loop).result(200))

    def freeze(name: str) -> None:
        """When the failure is in the log and the retry is waited for."""
        if name == "effect.before" and performed and not waiting:
            waiting.append(asyncio.get_running_loop().call_later(QUICK.lease_seconds / 20, stand_still))

    async def scene() -> None:
        async with hosting(frozen):
            set_hook(freeze)
            run = await frozen.start("order", {}, id="o-1")
            assert await run.result() == 1
            await asyncio.sleep(2 * QUICK.lease_seconds)

    with loop_apart() as loop:
        try:
            asyncio.run(scene())
        finally:
            set_hook(None)
    assert (ended, performed) == ([1], ["frozen", "other"])


async def _ends_elsewhere(app: weft.App, run: str) -> int:
    async with hosting(app), weft.Client(app.url) as client:
        return int(await client.get(run).result())


@contextmanager
def loop_apart() -> Iterator[asyncio.AbstractEventLoop]:
    """Another loop, on another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
