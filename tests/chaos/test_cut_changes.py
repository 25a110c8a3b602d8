"""Whoever changes runs while the wire to Postgres is cut learns that it is unknown, and may simply repeat it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

import weft
from tests import scale, servers
from tests.stores.proxy import Cut, Proxy
from weft.core.ids import RunId
from weft.errors import StoreError
from weft.runtime.bundles.service import BundleService
from weft.runtime.deletion import DeletionService

T = TypeVar("T")
PLACES = range(1, 13)
"""Which statement of each change does not come through, or is not answered."""
TRIES_MAX = 20
GRAPH = {
    "name": "letter",
    "nodes": {"wait": {"receive": "go", "next": "send"}, "send": {"step": "act", "with": {"n": 1}}},
}
OPS = [{"op": "add", "path": "/nodes/send/timeout", "value": "9s"}]


def build(url: str) -> weft.App:
    app = weft.App(url, durability="fast")

    @app.step
    async def act(n: int) -> str:
        return "x" * 40_000 + str(n)

    async def order(ctx: weft.Context, n: int) -> int:
        size = len(await act(n))
        await ctx.receive("go")
        return size

    for version in ("2", "1"):
        app.workflow(name="order", version=version)(order)

    @app.workflow
    async def quick(n: int) -> int:
        return len(await act(n))

    app.graph(GRAPH)
    return app


class Wire:
    """A host behind a wire that is cut once in each change."""

    def __init__(self, app: weft.App, proxy: Proxy) -> None:
        self.app = app
        self._proxy = proxy
        self.unknown = 0

    async def cut(self, place: int, how: Cut, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change while one of its statements is cut, and repeat it until it is answered."""
        left = place

        def judge(data: bytes) -> Cut | None:
            nonlocal left
            left -= data.startswith(b"B")
            if left:
                return None
            self._proxy.judge = lambda _: None
            return how

        self._proxy.judge = judge
        try:
            return await self.answered(change)
        finally:
            self._proxy.judge = lambda _: None

    async def answered(self, change: Callable[[], Awaitable[T]]) -> T:
        for _ in range(TRIES_MAX):
            try:
                return await change()
            except StoreError:
                self.unknown += 1
        return await change()

    async def until(self, run: str, kind: str) -> None:
        async def found() -> bool:
            return kind in await self.kinds(run)

        while not await self.answered(found):
            await asyncio.sleep(0.01)

    async def kinds(self, run: str) -> list[str]:
        return [event.kind async for event in self.app.get(run).events()]


@asynccontextmanager
async def wired() -> AsyncIterator[Wire]:
    url = servers.cluster().url("postgres")
    async with weft.App(url):
        pass
    await asyncio.to_thread(servers.empty, url)
    proxy = Proxy(servers.cluster().socket)
    port = await proxy.open()
    app = build(f"postgresql://postgres@127.0.0.1:{port}/postgres")
    try:
        async with app:
            yield Wire(app, proxy)
    finally:
        await proxy.close()


@pytest.mark.parametrize("how", list(Cut), ids=lambda how: how.value)
@pytest.mark.parametrize("place", scale.sample(2, PLACES))
def test_every_change_is_made_once_although_the_wire_is_cut(place: int, how: Cut) -> None:
    async def scenario() -> None:
        async with wired() as wire:
            await _change_runs(wire, place, how)
            await _delete_and_import(wire, place, how)
            await _schedule(wire, place, how)
            assert wire.unknown, "nothing was cut"

    asyncio.run(scenario())


async def _change_runs(wire: Wire, place: int, how: Cut) -> None:
    app = wire.app
    for workflow, given in (("order", {"n": 1}), ("letter", {}), ("quick", {"n": 2})):
        await app.start(workflow, given, id=workflow)
    for run, kind in (("order", "message_awaited"), ("letter", "message_awaited"), ("quick", "run_completed")):
        await wire.until(run, kind)
    await wire.cut(place, how, lambda: app.get("letter").patch(OPS, reason="r", key="k"))
    await wire.cut(place, how, lambda: app.get("order").patch(to="2", reason="r", key="k"))
    await wire.cut(place, how, lambda: app.get("quick").fork(id="fork", key="k"))

    async def pause() -> weft.BulkResult:
        bulk = await app.bulk("pause", "order", "letter")
        return await (await bulk.apply(key="k")).result()

    await wire.cut(place, how, pause)
    report = await wire.cut(place, how, app.check_live)
    assert report.ok
    for run, counted in (("letter", ("run_patched", "run_paused")), ("order", ("run_patched", "run_paused"))):
        kinds = await wire.kinds(run)
        assert [kinds.count(kind) for kind in counted] == [1, 1], run
    forks = [run.id async for run in app.list(workflow="quick")]
    assert sorted(forks) == ["fork", "quick"]
    await wire.until("fork", "run_completed")


async def _delete_and_import(wire: Wire, place: int, how: Cut) -> None:
    app = wire.app
    deletion, bundles = DeletionService(app.service), BundleService(app.service)
    bundle = await wire.cut(place, how, lambda: bundles.export("quick"))
    await wire.cut(place, how, lambda: app.get("quick").keep("a dispute"))
    await wire.cut(place, how, lambda: app.get("quick").end_keep())
    await wire.cut(place, how, lambda: deletion.delete(RunId("quick"), "asked for", key="k"))
    await wire.cut(place, how, lambda: bundles.import_(bundle))
    assert await app.get("quick").status() == "imported"
    assert await app.get("quick").result() == 40_001
    verbs = [entry.verb for entry in await deletion.audit(RunId("quick"))]
    assert sorted(verbs) == ["delete", "keep", "keep_end"]


async def _schedule(wire: Wire, place: int, how: Cut) -> None:
    schedules = wire.app.schedules
    now = datetime.now(UTC)
    add: Callable[[], Awaitable[Any]] = lambda: schedules.add("weekly", "quick", {"n": 3}, every="7d")  # noqa: E731
    await wire.cut(place, how, add)
    await wire.cut(place, how, lambda: schedules.backfill("weekly", now - timedelta(days=21), now))
    await wire.cut(place, how, lambda: schedules.pause("weekly", "a holiday"))
    await wire.cut(place, how, lambda: schedules.resume("weekly"))
    while (await wire.answered(lambda: schedules.get("weekly"))).backfills:
        await asyncio.sleep(0.01)
    assert (await schedules.get("weekly")).fired == 3
    await wire.cut(place, how, lambda: schedules.remove("weekly"))
