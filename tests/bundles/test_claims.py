"""A bundle claims nothing of the store into which it is imported: no parent, and no version of others."""

from typing import Any

import msgspec
import pytest

from tests.bundles.kit import content, go, ids, imported, recorded, service_of, shop, unzipped, zipped
from weft.core.ids import RunId
from weft.errors import Corrupt, NotFound
from weft.ports.definitions import VERSION_MARK
from weft.ports.store import Store
from weft.runtime.bundles.format import BundledDefinition, Manifest, Redaction, definition_file, manifest_of
from weft.runtime.bundles.service import BundleService
from weft.runtime.deletion import DeletionService
from weft.runtime.tenancy import TenantService
from weft.stores.memory import MemoryStore

GRAPH = {
    "name": "asking",
    "nodes": {"wait": {"ask": {"title": "Go on?"}, "next": "last"}, "last": {"pass": True}},
}
OPS = [{"op": "replace", "path": "/nodes/wait/ask/title", "value": "Really?"}]


def manifest(data: bytes) -> Manifest:
    return manifest_of(unzipped(data)["manifest.json"])


def forged(data: bytes, files: dict[str, bytes] | None = None, **fields: Any) -> bytes:
    about = msgspec.structs.replace(manifest(data), **fields)
    return zipped({**(files or unzipped(data)), "manifest.json": msgspec.json.encode(about)})


async def patched(store: Store | None = None) -> tuple[bytes, str]:
    """A bundle of a graph run that was patched, and the version that it followed first."""
    app = shop()
    app.graph(GRAPH)
    async with app:
        handle = await app.start("asking", {}, id="a-1")
        async for event in handle.events(follow=True):
            if event.kind == "ask_opened":
                break
        plan = await handle.patch(OPS, reason="politer")
        if store is not None:  # what another tenant has
            for version in (plan.base, plan.version):
                definition = await app.service.store.definitions.get("asking", version)
                assert definition is not None
                await store.definitions.put(msgspec.structs.replace(definition, origin="run"))
        return await BundleService(app.service).export("a-1"), plan.base


def test_a_forged_parent_is_no_parent() -> None:
    """Otherwise the copy would be deleted, kept and shown with the run of somebody else."""

    async def scenario() -> None:
        store = MemoryStore()
        await imported(store, await recorded(shop(), id="victim"))
        victim = await service_of(store).row(RunId("victim"))
        data = await recorded(shop(), id="forged")
        runs = [
            msgspec.structs.replace(run, parent=victim.uid) if run.uid == manifest(data).root else run
            for run in manifest(data).runs
        ]
        await imported(store, forged(data, runs=runs))
        assert await ids(store, parent=victim.uid) == ["victim.child"]
        deleted = await DeletionService(service_of(store)).delete(RunId("forged"), "it is a forgery")
        assert deleted.runs == 2

    go(scenario())


def test_a_child_that_was_exported_alone_can_be_deleted() -> None:
    async def scenario() -> None:
        home = MemoryStore()
        await imported(home, await recorded(shop()))
        data = await BundleService(service_of(home)).export("o-1.child")
        store = MemoryStore()
        await imported(store, data)
        deleted = await DeletionService(service_of(store)).delete(RunId("o-1.child"), "looked at")
        assert deleted.runs == 1
        with pytest.raises(NotFound):
            await service_of(store).row(RunId("o-1.child"))

    go(scenario())


def test_a_run_that_is_adopted_tells_its_end_to_no_run_here() -> None:
    async def scenario() -> None:
        app = shop()
        async with app:
            await app.start("order", {"n": 7}, id="o-1")
            async for event in app.get("o-1").events(follow=True):
                if event.kind == "message_awaited":
                    break
            data = await BundleService(app.service).move("o-1")
        about = manifest(data)
        runs = [msgspec.structs.replace(run, parent=run.parent or "f" * 32) for run in about.runs]
        store = MemoryStore()
        with pytest.raises(Corrupt, match="another parent"):
            await BundleService(service_of(store)).import_(forged(data, runs=runs), adopt=True)
        assert not store.content.runs

    go(scenario())


def test_every_version_that_a_log_followed_is_in_the_bundle() -> None:
    async def scenario() -> None:
        data, base = await patched()
        about = manifest(data)
        name = definition_file("asking", base)
        files = {entry: body for entry, body in unzipped(data).items() if entry != name}
        left = [one for one in about.definitions if one != BundledDefinition(name="asking", version=base)]
        store = MemoryStore()
        before = content(store)
        with pytest.raises(Corrupt) as error:
            await imported(store, forged(data, files, definitions=left))
        assert error.value.context["entry"] == name
        assert content(store) == before

    go(scenario())


def test_a_tenant_reads_no_version_of_another_through_a_bundle_that_left_it_out() -> None:
    """The answer is the same whether somebody has this version or not."""

    async def scenario() -> None:
        taken, free = MemoryStore(), MemoryStore()
        data, base = await patched(taken)
        name = definition_file("asking", base)
        files = {entry: body for entry, body in unzipped(data).items() if entry != name}
        left = [one for one in manifest(data).definitions if one.version != base]
        redacted = [Redaction(run="", seq=0, pointer=name, why="a secret")]
        bundle = forged(data, files, definitions=left, redacted=redacted)
        answers = []
        for store in (taken, free):
            with pytest.raises(Corrupt) as error:
                await BundleService(TenantService(service_of(store), "a")).import_(bundle)
            answers.append(str(error.value))
            assert not store.content.runs
        assert answers[0] == answers[1]

    go(scenario())


def test_an_imported_run_names_only_versions_that_came_with_it() -> None:
    async def scenario() -> None:
        data, base = await patched()
        about = manifest(data)
        run = msgspec.structs.replace(
            about.runs[0], attributes={**about.runs[0].attributes, f"{VERSION_MARK}0123456789abcdef": True, "team": "a"}
        )
        store = MemoryStore()
        await imported(store, forged(data, runs=[run]))
        row = await service_of(store).row(RunId("a-1"))
        marks = {name.removeprefix(VERSION_MARK) for name in row.attributes if name.startswith(VERSION_MARK)}
        assert marks == {base, about.runs[0].version}
        assert row.attributes["team"] == "a"

    go(scenario())
