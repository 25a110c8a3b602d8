"""Patches of graph runs from a process that does not host them: they come as mail, with a version made elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

import weft
from tests.code.hosted_store import Store
from tests.code.timeless import calm, play
from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import HostId, RunId
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.style import JudgedPatch
from weft.core.run.worked_out import hand_over
from weft.runtime.patch_limits import PatchLimits
from weft.runtime.patches import NO_HOST, NOT_YET, UNLESS_GONE_ON, PatchOptions, PatchService
from weft.runtime.service import RunService

SECOND = {"ops": [{"op": "replace", "path": "/nodes/b/step", "value": "second"}]}


def build() -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def first() -> str:
        return "first"

    @app.step
    async def second() -> str:
        return "second"

    nodes = {"a": {"receive": "go", "next": "b"}, "b": {"step": "first", "save": {"state.done": "${output}"}}}
    app.graph({"name": "order", "nodes": nodes})
    return app


async def patched(service: RunService, **options: Any) -> weft.PatchPlan:
    return await PatchService(service).patch("o-1", SECOND, PatchOptions(**options))


def test_a_host_reads_the_version_of_a_patch_that_another_process_made() -> None:
    async def scene() -> None:
        store, app = Store(), build()
        async with store.host(app):
            await app.start("order", id="o-1")
            await calm()
            assert (await patched(store.without_host(app))).applied
            await app.get("o-1").send("go")
            assert await app.get("o-1").result() == {"done": "second"}

    play(scene())


def test_a_patch_that_is_not_applied_yet_says_so_and_names_a_missing_host_only_if_there_is_none() -> None:
    async def scene() -> None:
        store, app = Store(), build()
        async with store.host(app):
            await app.start("order", id="o-1")
            await calm()
        elsewhere = store.without_host(app)

        nobody = await patched(elsewhere)
        assert (nobody.accepted, nobody.applied) == (True, False)
        assert nobody.notes == [f"{NO_HOST} {UNLESS_GONE_ON}"]
        await elsewhere.store.hosts.join(HostId("busy"), lease_ms=3_600_000, about={"workflows": ["order"]})
        later = await patched(elsewhere)
        assert (later.accepted, later.notes) == (True, [f"{NOT_YET} {UNLESS_GONE_ON}"])
        dry = await patched(elsewhere, dry_run=True)
        assert (dry.accepted, dry.notes, dry.digest) == (False, [], later.digest)

    play(scene())


def test_a_plan_says_what_the_document_changes_and_its_digest_leaves_that_out() -> None:
    async def scene() -> None:
        store, app = Store(), build()
        more = {"a": {"receive": "go", "next": "c"}, "c": {"step": "second", "next": "b"}, "b": {"step": "second"}}
        patch = {"document": {"name": "order", "nodes": more, "limits": {"time": "1h"}}}
        async with store.host(app):
            await app.start("order", id="o-1")
            await calm()
            patches = PatchService(store.without_host(app))
            plan = await patches.patch("o-1", patch, PatchOptions(dry_run=True))
            edits = ["changes a: next", "changes b: step, save"]
            assert plan.changes == ["adds the node c", *edits, "removes the edge a>b", "changes limits"]
            assert msgspec.structs.replace(plan, changes=[]).signed().digest == plan.digest
            assert (await patches.patch("o-1", patch, PatchOptions(expect=plan.digest))).applied
            undo = await patches.undo("o-1", PatchOptions(dry_run=True))
            assert undo.changes == ["removes the node c", *edits, "adds the edge a>b", "changes limits"]
            other = {"document": {"name": "order", "nodes": {"c": more["c"], "b": more["b"]}}}
            entry = await patches.patch("o-1", other, PatchOptions(dry_run=True))
            assert "adds the entry c" in entry.changes

    play(scene())


def test_a_digest_that_no_plan_has_is_answered_with_the_one_of_the_plan() -> None:
    async def scene() -> None:
        store, app = Store(), build()
        async with store.host(app):
            await app.start("order", id="o-1")
            await calm()
            plan = await patched(store.without_host(app), dry_run=True)
            with pytest.raises(weft.PatchRefused, match=f"is not the expected one: its digest is {plan.digest}") as no:
                await patched(store.without_host(app), expect="0123456789abcdef01234567")
            assert no.value.code == "patch.moved_on"

    play(scene())


def test_a_patch_that_cannot_wait_is_refused_with_the_reason() -> None:
    async def scene() -> None:
        store, app = Store(), build()
        async with store.host(app):
            await app.start("order", id="o-1")
            await calm()
            elsewhere = store.without_host(app)
            with pytest.raises(weft.Refused, match="order has no node 'nowhere'"):
                await patched(elsewhere, wait_ms=1000, at="nowhere")

            elsewhere.patch_limits = PatchLimits(patches=1)
            assert (await patched(elsewhere, wait_ms=3_600_000, at="b")).asked
            with pytest.raises(weft.LimitExceeded):
                await patched(elsewhere, wait_ms=3_600_000, at="b")

    play(scene())


def test_a_patch_with_a_version_that_was_removed_meanwhile_is_refused() -> None:
    async def scene() -> None:
        store, app = Store(), build()
        async with store.host(app):
            await app.start("order", id="o-1")
            await calm()
            row = await app.get("o-1")._service.row(RunId("o-1"))
            unknown = c.PatchRun(patch=Raw(b'{"ops":[]}'), version="0123456789abcdef")
            event = e.RunPatched(rev=1, base=row.version, version=unknown.version)
            handed = hand_over(JudgedPatch(PatchPlan(run="o-1"), event), row.seq)
            ready = msgspec.structs.replace(unknown, worked_out=handed)
            await store.without_host(app).tell(RunId("o-1"), ready)
            await calm()
            await app.get("o-1").send("go")
            assert await app.get("o-1").result() == {"done": "first"}

    play(scene())
