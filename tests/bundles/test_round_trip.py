"""A run that was exported is the same run where it is imported, and nothing goes on with it there."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.bundles.kit import GRAPH, content, go, ids, imported, recorded, service_of, shop, unzipped, zipped
from tests.contract.conftest import STORES, Emptying
from weft.core import commands as c
from weft.core.ids import RunId, RunUid, Seq, child_uid
from weft.errors import Corrupt, IdTaken, Refused, RunFinished
from weft.observe.explain import explain
from weft.ports.run_query import RunQuery
from weft.ports.store import Store
from weft.runtime.bundles.format import Manifest, manifest_of
from weft.runtime.bundles.importer import STATUS
from weft.runtime.bundles.service import BundleService
from weft.runtime.fork_order import ForkOrder
from weft.runtime.forks import ForkService
from weft.runtime.orders import StartOrder
from weft.runtime.tenancy import TenantService
from weft.stores.memory import MemoryStore


@pytest.fixture(scope="module")
def bundle() -> bytes:
    return go(recorded(shop()))


def manifest(data: bytes) -> Manifest:
    return manifest_of(unzipped(data)["manifest.json"])


def test_a_bundle_has_all_that_the_runs_need(bundle: bytes) -> None:
    files, about = unzipped(bundle), manifest(bundle)

    assert (about.weft, len(about.runs), len(about.blobs), about.redacted) == ("bundle/1", 2, 1, [])
    assert about.runs[0].uid == about.root
    assert about.runs[1].parent == about.root
    assert {name.partition("/")[0] for name in files} == {"manifest.json", "SHA256SUMS", "runs", "blobs"}
    lines = files[f"runs/{about.root}.jsonl"].splitlines()
    assert len(lines) == about.runs[0].seq
    assert set(json.loads(lines[0])) == {"seq", "at", "crc", "event"}


def test_a_run_that_was_cancelled_before_it_began_is_imported_too(bundle: bytes) -> None:
    """It has no style. ``weft gc --export`` writes such runs, and deletes them."""

    async def scenario() -> None:
        home, there = service_of(MemoryStore()), MemoryStore()
        await home.start(StartOrder(workflow="order", input={"n": 1}, id="o-1"))
        await home.tell(RunId("o-1"), c.CancelRun("not wanted"))
        data = await BundleService(home).export("o-1")
        done = await imported(there, data)
        assert [(run.id, run.status, run.created) for run in done.runs] == [("o-1", "cancelled", True)]
        assert "cancelled" in (await explain(service_of(there), await service_of(there).row(RunId("o-1")))).summary
        with pytest.raises(Refused, match="never began"):
            await ForkService(service_of(there)).fork("o-1", ForkOrder())
        runs = [msgspec.structs.replace(run, style="") for run in manifest(bundle).runs]
        forged = msgspec.json.encode(msgspec.structs.replace(manifest(bundle), runs=runs))
        with pytest.raises(Corrupt, match="another run"):
            await imported(MemoryStore(), zipped({**unzipped(bundle), "manifest.json": forged}))

    go(scenario())


@pytest.mark.parametrize("kind", sorted(STORES))
def test_every_store_takes_it(kind: str, bundle: bytes, tmp_path: Path, emptying: Emptying) -> None:
    store = STORES[kind](tmp_path, emptying)()

    async def scenario() -> None:
        await store.open()
        done = await imported(store, bundle)
        first = done.runs[0]
        assert (first.id, first.status, first.created) == ("o-1", "completed", True)
        again = await imported(store, bundle)
        assert [run.created for run in again.runs] == [False, False]
        service = service_of(store)
        row = await service.row(RunId("o-1"))
        assert (row.status, row.attributes[STATUS], row.owner) == ("imported", "completed", None)
        assert (await service.ending(row.id)).output == b"50006"
        assert await ids(store) == []
        assert sorted(await ids(store, status="imported")) == sorted(run.id for run in done.runs)
        assert await service.store.directory.claimable([("order", "1")], dead=[], now=2**61, limit=9) == []
        about = manifest(bundle)
        stored = await store.log.events(row.uid, after=Seq(0), limit=1000)
        assert len(stored) == about.runs[0].seq
        await _refuses_everything(service)
        await store.close()

    go(scenario())


async def _refuses_everything(service: Any) -> None:
    commands: list[c.Mailed] = [
        c.DeliverMessage("m", "paid"),
        c.CancelRun(),
        c.PauseRun(),
        c.ResumeRun(),
        c.RetryRun(),
    ]
    for command in commands:
        with pytest.raises(RunFinished) as refused:
            await service.tell(RunId("o-1"), command)
        assert refused.value.code == "run.imported"
    with pytest.raises(IdTaken):
        await service.start(StartOrder(workflow="order", input={"n": 3}, id="o-1"))


def test_a_run_under_way_is_imported_as_it_stood() -> None:
    async def scenario() -> None:
        data = await recorded(shop(), 7)
        store = MemoryStore()
        done = await imported(store, data)
        assert done.runs[0].status == "running"
        ending = await service_of(store).ending(RunId("o-1"))
        assert ending.status == "imported"

    go(scenario())


def test_no_host_goes_on_with_an_imported_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def scenario() -> None:
        data = await recorded(shop(), 7)
        app = shop(url)
        async with app:
            (tmp_path / "o.zip").write_bytes(data)
            done = await app.import_(tmp_path / "o.zip")
            assert done.runs[0].id == "o-1"
            with pytest.raises(RunFinished):
                await app.get("o-1").send("paid", 1)
            with pytest.raises(RunFinished) as refused:
                await app.get("o-1").result(timeout=200)
            assert refused.value.code == "run.imported"
            with pytest.raises(RunFinished) as refused:
                await app.get("o-1").patch(to="2", dry_run=True)
            assert refused.value.code == "run.imported"
            assert await app.get("o-1").status() == "imported"
        async with shop(url) as again:
            await asyncio.sleep(0.3)
            assert await again.get("o-1").status() == "imported"
            row = await again.service.row(RunId("o-1"))
            assert (row.owner, row.epoch) == (None, 0)

    go(scenario())


def test_an_id_that_is_taken_gets_a_suffix(bundle: bytes) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        other = await recorded(shop(), 4)
        first = await imported(store, bundle)
        second = await imported(store, other)
        third = await imported(store, await recorded(shop(), 5))
        assert [done.runs[0].id for done in (first, second, third)] == ["o-1", "o-1~import", "o-1~import2"]
        assert second.runs[0].original == "o-1"
        again = await imported(store, other)
        assert (again.runs[0].id, again.runs[0].created) == ("o-1~import", False)

    go(scenario())


def test_the_same_bundle_twice_changes_nothing(bundle: bytes) -> None:
    store = MemoryStore()
    go(imported(store, bundle))
    before = content(store)

    go(imported(store, bundle))

    assert content(store) == before


def test_a_run_is_not_imported_over_itself(bundle: bytes) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        await imported(store, bundle)
        files = unzipped(bundle)
        about = manifest(bundle)
        name = f"runs/{about.root}.jsonl"
        longer = msgspec.structs.replace(about.runs[0], seq=about.runs[0].seq - 1)
        cut = b"".join(line + b"\n" for line in files[name].splitlines()[:-1])
        shorter = _with_run(files, about, longer, cut)
        done = await imported(store, shorter)
        assert not any(run.created for run in done.runs)

    go(scenario())


def test_a_tenant_cannot_tell_from_an_import_whether_another_tenant_has_such_a_run(bundle: bytes) -> None:
    """Its copies have uids of their own, the same ones each time, whatever others have."""

    async def scenario() -> None:
        taken, free = MemoryStore(), MemoryStore()
        await BundleService(TenantService(service_of(taken), "b")).import_(bundle)
        before = content(taken)["runs"]
        answers = []
        for store in (taken, free):
            service = TenantService(service_of(store), "a")
            done = await BundleService(service).import_(bundle)
            again = await BundleService(service).import_(bundle)
            assert [(run.uid, run.id, run.created) for run in again.runs] == [
                (run.uid, run.id, False) for run in done.runs
            ]
            answers.append(done)
            assert (await service.ending(RunId("o-1"))).output == b"50006"
            row = await service.row(RunId("o-1"))
            (below,) = (await service.search(RunQuery(parent=row.uid))).rows
            assert below.uid == child_uid(row.uid, 2)
            copy = await BundleService(service).export("o-1", tree=True)
            assert (await imported(MemoryStore(), copy)).runs[0].created
        assert answers[0] == answers[1]
        assert {uid: content(taken)["runs"][uid] for uid in before} == before

    go(scenario())


def test_a_tenant_that_imports_its_own_run_changes_nothing() -> None:
    async def scenario() -> None:
        app = shop()
        async with app:
            service = TenantService(app.service, "a")
            await service.start(StartOrder(workflow="order", input={"n": 3}, id="o-1"))
            await service.ending(RunId("o-1"), timeout=200)
            data = await BundleService(service).export("o-1", tree=True)
            done = await BundleService(service).import_(data)
            assert not any(run.created for run in done.runs)

    go(scenario())


@pytest.mark.parametrize("name", ["schedule/nightly", "bulk/1"])
def test_a_bundle_has_no_runs_with_ids_of_wefts_own(bundle: bytes, name: str) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        about = manifest(bundle)
        run = msgspec.structs.replace(about.runs[0], id=name)
        forged = _with_run(unzipped(bundle), about, run, unzipped(bundle)[f"runs/{run.uid}.jsonl"])
        with pytest.raises(weft.UsageError, match="Weft's own"):
            await imported(store, forged)
        assert content(store)["runs"] == {}

    go(scenario())


def _with_run(files: dict[str, bytes], about: Manifest, run: Any, log: bytes) -> bytes:
    run = msgspec.structs.replace(run, digest=hashlib.sha256(log).hexdigest())
    changed = msgspec.structs.replace(about, runs=[run, *about.runs[1:]])
    return zipped(
        {
            **files,
            f"runs/{run.uid}.jsonl": log,
            "manifest.json": msgspec.json.encode(changed),
        }
    )


def test_the_document_of_a_graph_goes_with_it_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "sorting.yaml").write_text(GRAPH)

    async def scenario() -> None:
        app = shop()
        app.graph(tmp_path / "sorting.yaml")
        async with app:
            handle = await app.start("sorting", {"n": 9}, id="s")
            assert await handle.result(timeout=200) == {"size": 18}
            await app.export("s", tmp_path / "s.zip")
        store = MemoryStore()
        await imported(store, (tmp_path / "s.zip").read_bytes())
        service = service_of(store)
        assert (await service.ending(RunId("s"))).output == b'{"size":18}'
        (definition,) = store.content.definitions.values()
        assert definition.origin == "run"
        assert b"# Sorts by size." in definition.body
        state = await service.reader.state(await service.row(RunId("s")))
        assert state.status == "completed"

    go(scenario())


def test_one_run_is_json_and_a_tree_is_not(bundle: bytes) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        done = await imported(store, bundle)
        bundles = BundleService(service_of(store))
        with pytest.raises(Refused):
            await bundles.export_events("o-1")
        events = await bundles.export_events(done.runs[1].id)
        assert events["weft"] == "events/1"

    go(scenario())


def test_what_is_exported_again_is_the_same(bundle: bytes) -> None:
    async def scenario() -> None:
        store: Store = MemoryStore()
        await imported(store, bundle)
        again = await BundleService(service_of(store)).export("o-1", tree=True)
        first, second = unzipped(bundle), unzipped(again)
        assert {name: data for name, data in first.items() if name.startswith(("runs/", "blobs/"))} == {
            name: data for name, data in second.items() if name.startswith(("runs/", "blobs/"))
        }

    go(scenario())


def test_the_output_of_steps_goes_with_it_if_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = weft.App("memory://")

        @app.workflow
        async def talk(ctx: weft.Context) -> None:
            for n in range(3):
                await ctx.emit("progress.eu", {"n": n})

        async with app:
            await (await app.start("talk", id="t")).result(timeout=200)
            await app.export("t", tmp_path / "silent.zip")
            await app.export("t", tmp_path / "t.zip", streams=True)
        assert not [name for name in unzipped((tmp_path / "silent.zip").read_bytes()) if name.startswith("streams/")]
        data = (tmp_path / "t.zip").read_bytes()
        store = MemoryStore()
        for _ in range(2):
            done = await imported(store, data)
            (chunks,) = [one.chunks for one in store.content.streams.values()]
            assert [json.loads(chunk.body) for chunk in chunks] == [{"n": 0}, {"n": 1}, {"n": 2}]
        assert await store.streams.lengths(RunUid(done.runs[0].uid)) == {"progress.eu": 3}
        files = unzipped(data)
        (name,) = [one for one in files if one.startswith("streams/")]
        for broken in (b"", files[name][:-9] + b"\n", files[name].replace(b'"offset":2', b'"offset":7')):
            with pytest.raises(Corrupt) as refused:
                await imported(MemoryStore(), zipped({**files, name: broken}))
            assert refused.value.context["entry"] == name

    go(scenario())


def test_an_imported_run_is_explained_as_it_stood() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        await imported(store, await recorded(shop(), 7))
        service = service_of(store)
        found = await explain(service, await service.row(RunId("o-1")))
        assert (found.status, found.hint) == ("imported", "Fork it: weft fork o-1")
        assert "nothing goes on with it" in found.summary
        assert [one.unblock for one in found.waiting] == [""]

    go(scenario())
