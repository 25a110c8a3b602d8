"""A run that is moved goes on in the other store, in no other, and once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.bundles.kit import go, ids, service_of, shop, unzipped, zipped
from tests.contract.conftest import STORES, Emptying
from weft.core import events as e
from weft.core.ids import Millis, RunId, Seq
from weft.errors import Corrupt, IdTaken, NotAllowed, NotFound, Refused, RunFinished, UsageError
from weft.observe.explain import explain
from weft.ports.store import Store
from weft.runtime.bundles.format import manifest_of
from weft.runtime.bundles.service import BundleService
from weft.runtime.clock import SystemClock
from weft.runtime.deletion import DeletionService
from weft.runtime.retention import Collector, GcOrder
from weft.runtime.retention_policy import single_policy
from weft.runtime.service import RunService
from weft.runtime.tenancy import TenantService
from weft.stores.memory import MemoryStore


def depot(url: str = "memory://", done: list[str] | None = None) -> weft.App:
    """An app with runs that wait: for a message, below another run, for a time, for a step."""
    app = weft.App(url)
    performed = [] if done is None else done

    @app.step
    def pack(item: str) -> str:
        performed.append(item)
        return f"packed {item}"

    @app.step
    async def slow(item: str) -> str:
        await asyncio.Event().wait()
        return item

    @app.workflow
    async def parcel(ctx: weft.Context, item: str) -> str:
        first = await pack(item)
        text = await ctx.receive("go", str)
        return f"{first}, {text}, {await pack(f'{item} again')}"

    @app.workflow
    async def outer(ctx: weft.Context, item: str) -> str:
        await ctx.call(quick(item))
        return await ctx.call(parcel(item), id=f"{ctx.run_id}/inner")

    @app.workflow
    async def quick(ctx: weft.Context, item: str) -> str:
        return await pack(f"{item} quickly")

    @app.workflow
    async def sleeper(ctx: weft.Context, item: str) -> str:
        await ctx.sleep("3h")
        return await pack(item)

    @app.workflow
    async def busy(ctx: weft.Context, item: str) -> str:
        return await slow(item)

    return app


async def until(handle: Any, kind: str, times: int = 1) -> None:
    async for event in handle.events(follow=True):
        times -= event.kind == kind
        if not times:
            return


async def waiting(app: weft.App, workflow: str = "parcel", id: str = "p-1") -> Any:
    """A run that waits for a message, and nothing else."""
    handle = await app.start(workflow, {"item": "lamp"}, id=id)
    if workflow == "outer":
        await until(handle, "child_started", 2)
    await until(handle if workflow == "parcel" else app.get(f"{id}/inner"), "message_awaited")
    return handle


def bundles(app: weft.App) -> BundleService:
    return BundleService(app.service)


async def kinds(service: RunService, run_id: str) -> list[str]:
    row = await service.row(RunId(run_id))
    return [msgspec.json.decode(one.body)["kind"] async for one in service.reader.events(row)]


@pytest.mark.parametrize("workflow", ["parcel", "outer"])
def test_it_ends_here_and_goes_on_there_with_all_runs_below_it(workflow: str) -> None:
    done: list[str] = []

    async def scenario() -> None:
        async with depot(done=done) as home, depot(done=done) as there:
            handle = await waiting(home, workflow)
            uid = (await home.service.row(RunId("p-1"))).uid
            last = home.get("p-1" if workflow == "parcel" else "p-1/inner")
            await last.send("note", "kept", key="k-1")
            data = await bundles(home).move("p-1", to="the depot", reason="nearer", by="ann")

            assert await handle.status() == "moved"
            with pytest.raises(RunFinished, match="moved to the depot") as caught:
                await last.send("go", "here")
            assert caught.value.code == "run.moved"
            with pytest.raises(RunFinished, match="moved to the depot"):
                await handle.result(timeout=120)
            assert "the depot" in (await explain(home.service, await home.service.row(RunId("p-1")))).summary

            result = await bundles(there).import_(data, adopt=True, by="bob")
            assert {(run.status, run.created) for run in result.runs} <= {("running", True), ("completed", True)}
            assert (await there.service.row(RunId("p-1"))).uid == uid
            moved = there.get(last.id)
            await moved.send("note", "kept", key="k-1")  # the key is known there too
            await moved.send("go", "there")
            assert await there.get("p-1").result(timeout=120) == "packed lamp, there, packed lamp again"
            assert (await kinds(there.service, last.id)).count("message_received") == 2
            assert (await kinds(home.service, "p-1"))[-1] == "run_moved"
            events = await kinds(there.service, "p-1")
            assert events[events.index("run_moved") + 1] == "run_adopted"

    go(scenario())
    assert sorted(done) == sorted(["lamp", "lamp again"] + ["lamp quickly"] * (workflow == "outer"))


@pytest.mark.parametrize("workflow", ["parcel", "outer"])
def test_a_copy_that_was_imported_before_is_counted_when_it_is_adopted(workflow: str) -> None:
    async def scenario() -> None:
        async with depot() as home, depot() as there:
            await waiting(home, workflow)
            data = await bundles(home).move("p-1")
            copies = await bundles(there).import_(data)
            assert all(run.created for run in copies.runs)

            adopted = await bundles(there).import_(data, adopt=True)
            assert [run.created for run in adopted.runs] == [True] * len(copies.runs)
            again = await bundles(there).import_(data, adopt=True)
            assert [run.created for run in again.runs] == [False] * len(copies.runs)

    go(scenario())


def test_a_bundle_is_made_again_and_adopted_once() -> None:
    async def scenario() -> None:
        async with depot() as home, depot() as there:
            await waiting(home)
            data = await bundles(home).move("p-1")
            assert await bundles(home).move("p-1") == data, "it was lost, or never written"

            await bundles(there).import_(data, adopt=True)
            again = await bundles(there).import_(data, adopt=True)
            assert [run.created for run in again.runs] == [False]
            assert (await kinds(there.service, "p-1")).count("run_adopted") == 1
            with pytest.raises(Refused, match="moved away from here"):
                await bundles(home).import_(data, adopt=True)

            await there.get("p-1").send("go", "x")
            await there.get("p-1").result(timeout=120)
            await DeletionService(there.service).delete(RunId("p-1"), "old", by="ann")
            with pytest.raises(Refused, match="deleted since"):
                await bundles(there).import_(data, adopt=True)

    go(scenario())


def test_a_copy_imported_after_the_run_was_deleted_is_not_adopted_in_either_store() -> None:
    done: list[str] = []

    async def scenario() -> None:
        async with depot(done=done) as home, depot(done=done) as there:
            await waiting(home)
            data = await bundles(home).move("p-1")
            await bundles(there).import_(data, adopt=True)
            await there.get("p-1").send("go", "x")
            await there.get("p-1").result(timeout=120)
            for app in (there, home):
                await DeletionService(app.service).delete(RunId("p-1"), "old", by="ann")
                await bundles(app).import_(data)
                with pytest.raises(Refused, match="deleted since") as caught:
                    await bundles(app).import_(data, adopt=True)
                assert caught.value.code == "run.moved"
                assert await app.get("p-1").status() == "imported"

    go(scenario())
    assert sorted(done) == ["lamp", "lamp again"]


def test_it_comes_back_with_what_happened_elsewhere() -> None:
    async def scenario() -> None:
        async with depot() as home, depot() as there:
            await waiting(home, "outer")
            first = await bundles(home).move("p-1")
            await bundles(there).import_(first, adopt=True)
            await there.get("p-1/inner").send("note", 1)
            await until(there.get("p-1/inner"), "message_received")
            back = await bundles(there).move("p-1")
            await bundles(home).import_(back, adopt=True)
            await bundles(home).import_(back, adopt=True)
            again = await bundles(there).import_(first, adopt=True)
            assert [run.status for run in again.runs if run.id == "p-1"] == ["moved"], "it was adopted, and has left"

            await home.get("p-1/inner").send("go", "home")
            assert await home.get("p-1").result(timeout=120) == "packed lamp, home, packed lamp again"
            assert (await kinds(home.service, "p-1")).count("run_adopted") == 2

    go(scenario())


def test_what_cannot_be_moved_says_why_and_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with depot() as home:
            busy = await home.start("busy", {"item": "x"}, id="b-1")
            await until(busy, "task_scheduled")
            with pytest.raises(Refused, match="slow of b-1") as caught:
                await bundles(home).move("b-1")
            assert "weft pause b-1" in caught.value.hint
            assert await busy.status() == "running"
            await waiting(home, "outer", "o-1")
            with pytest.raises(Refused, match="child run"):
                await bundles(home).move("o-1/inner")
            await DeletionService(home.service).keep(RunId("o-1"), "law", by="ann")
            with pytest.raises(Refused, match="is kept"):
                await bundles(home).move("o-1")
            quick = await home.start("quick", {"item": "x"}, id="q-1")
            await quick.result(timeout=120)
            with pytest.raises(RunFinished, match="nothing to move"):
                await bundles(home).move("q-1")
            with pytest.raises(NotFound):
                await bundles(home).move("unknown")
            assert await home.get("o-1").status() == "running"
            await busy.cancel()  # or the host waits for its step

    go(scenario())


def test_a_bundle_that_moves_nothing_or_was_changed_is_refused() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        other = BundleService(service_of(store))
        async with depot() as home:
            await waiting(home)
            copy = await bundles(home).export("p-1", tree=True)
            with pytest.raises(UsageError, match="goes on with it"):
                await other.import_(copy, adopt=True)
            data = await bundles(home).move("p-1")
            files = unzipped(data)
            manifest = manifest_of(files["manifest.json"])
            keys = [msgspec.structs.replace(run, keys=[*run.keys, ["k", "d", 1]]) for run in manifest.runs]  # type: ignore[list-item]
            changed = msgspec.structs.replace(manifest, runs=keys)
            with pytest.raises(Corrupt):
                await other.import_(zipped(files | {"manifest.json": msgspec.json.encode(changed)}), adopt=True)
            pretended = msgspec.structs.replace(manifest_of(unzipped(copy)["manifest.json"]), moved=manifest.moved)
            with pytest.raises(Corrupt, match="does not end with this move"):
                await other.import_(
                    zipped(unzipped(copy) | {"manifest.json": msgspec.json.encode(pretended)}), adopt=True
                )
            assert not store.content.runs

    go(scenario())


def test_a_tenant_cannot_tell_from_an_adoption_whether_another_tenant_has_such_a_run() -> None:
    async def scenario() -> None:
        taken, free = MemoryStore(), MemoryStore()
        async with depot() as home:
            await waiting(home)
            data = await bundles(home).move("p-1")
        await BundleService(service_of(taken)).import_(data)
        answers = []
        for store in (taken, free):
            before = dict(store.content.runs)
            with pytest.raises(NotAllowed) as refused:
                await BundleService(TenantService(service_of(store), "a")).import_(data, adopt=True)
            answers.append(str(refused.value))
            assert store.content.runs == before
        assert answers[0] == answers[1]

    go(scenario())


def test_an_id_that_is_taken_is_refused_before_anything_is_written() -> None:
    async def scenario() -> None:
        async with depot() as home, depot() as there:
            await waiting(home)
            await waiting(there)
            data = await bundles(home).move("p-1")
            before = await ids(there.service.store, internal=True)
            with pytest.raises(IdTaken, match="keeps its id"):
                await bundles(there).import_(data, adopt=True)
            assert await ids(there.service.store, internal=True) == before

    go(scenario())


def test_an_imported_copy_can_be_adopted_later() -> None:
    async def scenario() -> None:
        async with depot() as home, depot() as there:
            await waiting(home, "outer")
            data = await bundles(home).move("p-1")
            await bundles(there).import_(data)
            assert await there.get("p-1").status() == "imported"
            await bundles(there).import_(data, adopt=True)
            await there.get("p-1/inner").send("go", "late")
            await there.get("p-1").result(timeout=120)
            assert await ids(there.service.store, status="imported") == []

    go(scenario())


def test_a_paused_run_and_one_that_sleeps_keep_their_status_and_time() -> None:
    async def scenario() -> None:
        async with depot() as home, depot() as there:
            await until(await home.start("sleeper", {"item": "x"}, id="s-1"), "timer_set")
            due = (await home.service.reader.state(await home.service.row(RunId("s-1")))).timers
            paused = await waiting(home)
            await paused.pause()
            for run in ("s-1", "p-1"):
                await bundles(there).import_(await bundles(home).move(run), adopt=True)
            assert await there.get("p-1").status() == "paused"
            assert (await there.service.reader.state(await there.service.row(RunId("s-1")))).timers == due
            await there.get("p-1").resume()
            await there.get("p-1").send("go", "on")
            assert "on" in await there.get("p-1").result(timeout=120)

    go(scenario())


def test_retention_keeps_a_moved_run_as_long_as_a_completed_one() -> None:
    async def scenario() -> None:
        async with depot() as home:
            await waiting(home)
            await bundles(home).move("p-1")
            service = home.service

            class Later(SystemClock):
                def now_ms(self) -> Millis:
                    return Millis(service.clock.now_ms() + 3 * 86_400_000)

            for age, left in (("4d", 1), ("2d", 0)):
                await Collector(service.store, Later()).collect(GcOrder(policy=single_policy(age)))
                assert len(await ids(service.store, status="moved")) == left

    go(scenario())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.proof
def test_from_one_store_to_any_other(kind: str, tmp_path: Path, emptying: Emptying) -> None:
    async def scenario(store: Store) -> None:
        async with depot() as home:
            await waiting(home, "outer")
            data = await bundles(home).move("p-1")
        await store.open()
        service = service_of(store)
        await BundleService(service).import_(data, adopt=True)
        row = await service.row(RunId("p-1"))
        assert (row.status, row.owner, row.ended_at) == ("running", None, None)
        back = await BundleService(service).move("p-1")
        async with depot() as last:
            await bundles(last).import_(back, adopt=True)
            await last.get("p-1/inner").send("go", "on")
            assert "on" in await last.get("p-1").result(timeout=120)
        last_event = (await store.log.events(row.uid, after=Seq(row.seq), limit=1))[0]
        assert isinstance(e.decode(last_event.body), e.RunMoved)
        await store.close()

    go(scenario(STORES[kind](tmp_path, emptying)()))


def test_the_kit_of_the_other_tests_moves_too() -> None:
    async def scenario() -> None:
        async with shop() as home:
            handle = await home.start("order", {"n": 7}, id="o-1")
            await until(handle, "message_awaited")
            data = await bundles(home).move("o-1")
        async with shop() as there:
            await bundles(there).import_(data, adopt=True)
            await there.get("o-1").send("paid", 1)
            assert await there.get("o-1").result(timeout=120) == 50_014

    go(scenario())
