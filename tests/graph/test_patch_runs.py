"""Patches of real runs: in memory, asleep, failed, held by another process, with keys, digests and undo."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

import weft
from weft.core import commands as c
from weft.core.ids import HostId, RunId
from weft.testing import World


def _app(url: str = "memory://") -> tuple[weft.App, list[str]]:
    app = weft.App(url)
    done: list[str] = []

    @app.step
    async def work() -> str:
        done.append("work")
        return "done"

    @app.step
    async def other() -> str:
        done.append("other")
        return "other"

    return app, done


def _document(**nodes: Any) -> dict[str, Any]:
    return {"name": "order", "nodes": {name: node for name, node in nodes.items() if node is not None}}


FIRST = _document(
    a={"step": "work", "next": "b"}, b={"ask": {"title": "Go on?"}, "next": "c"}, c={"step": "work", "next": []}
)


async def _asking(handle: weft.Handle[Any]) -> None:
    while "ask_opened" not in [event.kind async for event in handle.events()]:
        await asyncio.sleep(0.01)


def test_a_run_follows_a_new_document_from_where_it_stands() -> None:
    asyncio.run(_a_run_follows_a_new_document_from_where_it_stands())


async def _a_run_follows_a_new_document_from_where_it_stands() -> None:
    app, done = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-1")
        await _asking(handle)
        plan = await handle.patch([{"op": "replace", "path": "/nodes/c/step", "value": "other"}], dry_run=True)
        assert (plan.ok, plan.applied, plan.verdict) == (True, False, "sound")
        assert [one.rev for one in await handle.versions()] == [0]

        applied = await handle.patch(
            [{"op": "replace", "path": "/nodes/c/step", "value": "other"}], expect=plan.digest, by="ann"
        )
        assert applied.applied
        assert [(one.rev, one.by) for one in await handle.versions()] == [(0, ""), (1, "ann")]
        await handle.decide("b", approved=True)
        await handle.result(timeout=200)
    assert done == ["work", "other"]


def test_a_patch_that_changes_nothing_writes_nothing() -> None:
    asyncio.run(_a_patch_that_changes_nothing_writes_nothing())


async def _a_patch_that_changes_nothing_writes_nothing() -> None:
    app, _ = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-1")
        await _asking(handle)
        before = [event.seq async for event in handle.events()]

        plans = [
            await handle.patch([]),
            await handle.patch(document=FIRST),
            await handle.patch([], dry_run=True),
            await handle.patch([], wait="1h"),
            await handle.patch([], review=["bob"], by="ann"),
        ]

        assert [(plan.unchanged, plan.applied, plan.asked) for plan in plans] == [(True, False, 0)] * 5
        assert [event.seq async for event in handle.events()] == before
        with pytest.raises(weft.PatchRefused, match="is not the expected one"):
            await handle.patch([], expect="0" * 64)
        set_by_hand = await handle.patch([], set={"state.limit": 5}, reason="by hand")
        assert (set_by_hand.applied, set_by_hand.unchanged) == (True, False)
        assert [(entry.what, entry.place, entry.detail) for entry in set_by_hand.entries] == [
            ("sets", "state.limit", "5")
        ]


def test_undo_and_redo() -> None:
    asyncio.run(_undo_and_redo())


async def _undo_and_redo() -> None:
    app, done = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-2")
        await _asking(handle)
        with pytest.raises(weft.Refused, match="no patch that can be undone"):
            await handle.undo_patch()
        await handle.patch([{"op": "replace", "path": "/nodes/c/step", "value": "other"}])
        await handle.undo_patch()
        with pytest.raises(weft.Refused):
            await handle.undo_patch()
        await handle.undo_patch(redo=True)
        await handle.undo_patch()
        assert [(one.rev, one.undoes) for one in await handle.versions()] == [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)]
        await handle.decide("b", approved=True)
        await handle.result(timeout=200)
    assert done == ["work", "work"]


def test_a_refused_patch_has_all_reasons_and_changes_nothing() -> None:
    asyncio.run(_a_refused_patch_has_all_reasons_and_changes_nothing())


async def _a_refused_patch_has_all_reasons_and_changes_nothing() -> None:
    app, _ = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-3")
        await _asking(handle)
        versions = len(await app.service.store.definitions.versions("order"))
        before = [event.seq async for event in handle.events()]
        with pytest.raises(weft.PatchRefused) as refused:
            await handle.patch(document=_document(a={"step": "work", "next": "c"}, c={"step": "work"}))
        assert [one.code for one in refused.value.plan.refusals] == ["patch.node_removed"]
        assert [event.seq async for event in handle.events()] == before
        assert len(await app.service.store.definitions.versions("order")) == versions
        with pytest.raises(weft.BadGraph):
            await handle.patch([{"op": "add", "path": "/nodes/c/next", "value": "nobody"}])
        with pytest.raises(weft.BadPatch, match="exactly one of"):
            await handle.patch()
        with pytest.raises(weft.BadPatch, match="name of a workflow cannot change"):
            await handle.patch([{"op": "replace", "path": "/name", "value": "else"}])
        with pytest.raises(weft.BadPatch, match="needs a reason"):
            await handle.patch([], drop=[{"node": "b"}])
        await handle.cancel()


def test_a_stale_base_and_a_plan_that_is_no_longer_expected() -> None:
    asyncio.run(_a_stale_base_and_a_plan_that_is_no_longer_expected())


async def _a_stale_base_and_a_plan_that_is_no_longer_expected() -> None:
    app, _ = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-4")
        await _asking(handle)
        base = (await handle.versions())[0].version
        ops = [{"op": "replace", "path": "/nodes/c/step", "value": "other"}]
        plan = await handle.patch(ops, dry_run=True)
        await handle.patch([{"op": "replace", "path": "/nodes/a/step", "value": "other"}])
        with pytest.raises(weft.StaleBase, match="had 1 patch since"):
            await handle.patch(ops, base=base)
        with pytest.raises(weft.PatchRefused) as refused:
            await handle.patch(ops, expect=plan.digest)
        assert refused.value.code == "patch.moved_on"
        assert refused.value.plan.digest != plan.digest
        await handle.cancel()


def test_a_failed_run_is_repaired_and_goes_on() -> None:
    asyncio.run(_a_failed_run_is_repaired_and_goes_on())


async def _a_failed_run_is_repaired_and_goes_on() -> None:
    app, done = _app()

    @app.step
    async def broken() -> str:
        raise weft.Critical("broken")

    app.graph(_document(a={"step": "work", "next": "b"}, b={"step": "broken", "next": "c"}, c={"step": "work"}))
    async with app:
        handle = await app.start("order", id="o-5")
        with pytest.raises(weft.RunFailed):
            await handle.result(timeout=200)
        plan = await handle.patch([{"op": "replace", "path": "/nodes/b/step", "value": "other"}])
        assert plan.applied
        assert await handle.status() == "failed"
        await handle.retry()
        await handle.result(timeout=200)
        with pytest.raises(weft.RunFinished, match="fork"):
            await handle.patch([])
    assert done == ["work", "other", "work"]


def test_a_failed_run_goes_on_after_a_patch_took_away_a_node_where_branches_meet() -> None:
    asyncio.run(_a_failed_run_goes_on_after_a_patch_took_away_a_node_where_branches_meet())


async def _a_failed_run_goes_on_after_a_patch_took_away_a_node_where_branches_meet() -> None:
    app, done = _app()

    @app.step
    async def broken() -> str:
        raise weft.Critical("broken")

    app.graph(
        _document(
            a={"step": "work", "next": [{"to": "left", "when": "output == 'done'"}, {"to": "right"}]},
            left={"pass": True, "next": "meet"},
            right={"pass": True, "next": "meet"},
            meet={"pass": True, "next": "last"},
            last={"step": "broken"},
        )
    )
    async with app:
        handle = await app.start("order", id="o-6")
        with pytest.raises(weft.RunFailed):
            await handle.result(timeout=200)
        await handle.patch(
            [
                {"op": "replace", "path": "/nodes/left/next", "value": "last"},
                {"op": "replace", "path": "/nodes/right/next", "value": "last"},
                {"op": "remove", "path": "/nodes/meet"},
                {"op": "replace", "path": "/nodes/last/step", "value": "other"},
            ]
        )
        await handle.retry()
        await handle.result(timeout=200)
    assert done == ["work", "other"]


def test_a_paused_run_is_patched_and_a_key_counts_once() -> None:
    asyncio.run(_a_paused_run_is_patched_and_a_key_counts_once())


async def _a_paused_run_is_patched_and_a_key_counts_once() -> None:
    app, done = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-6")
        await _asking(handle)
        await handle.pause()
        ops = [{"op": "replace", "path": "/nodes/c/step", "value": "other"}]
        assert (await handle.patch(ops, key="once")).applied
        assert (await handle.patch(ops, key="once")).applied
        assert len(await handle.versions()) == 2
        await handle.resume()
        await handle.decide("b", approved=True)
        await handle.result(timeout=200)
    assert done == ["work", "other"]


def test_a_patched_run_goes_on_after_a_restart(tmp_path: Any) -> None:
    asyncio.run(_a_patched_run_goes_on_after_a_restart(tmp_path))


async def _a_patched_run_goes_on_after_a_restart(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'weft.db'}"
    app, _ = _app(url)
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-7")
        await _asking(handle)
    again, done = _app(url)
    again.graph(FIRST)
    async with weft.Client(url) as client:  # nobody hosts the run now
        plan = await client.get("o-7").patch(
            [{"op": "replace", "path": "/nodes/c/step", "value": "other"}], dry_run=True
        )
        assert plan.ok
    async with again:
        handle = again.get("o-7")
        assert (await handle.patch([{"op": "replace", "path": "/nodes/c/step", "value": "other"}])).applied
    third, done = _app(url)
    third.graph(FIRST)
    async with third:
        handle = third.get("o-7")
        await handle.decide("b", approved=True)
        await handle.result(timeout=200)
        assert (await third.service.row(RunId("o-7"))).version != (await handle.versions())[0].version
    assert done == ["other"]


def test_going_back_and_dropping() -> None:
    asyncio.run(_going_back_and_dropping())


async def _going_back_and_dropping() -> None:
    app, done = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-8")
        await _asking(handle)
        plan = await handle.patch([], move=[{"node": "b", "to": "a"}], reason="again")
        assert [(one.what, one.place, one.to) for one in plan.entries] == [("moves", "b", "a")]
        while done != ["work", "work"]:
            await asyncio.sleep(0.01)
        with pytest.raises(weft.PatchRefused) as refused:
            await handle.patch([], drop=[{"node": "b"}], reason="no")
        assert refused.value.code == "patch.would_end"
        await handle.cancel()


def test_a_version_that_is_not_in_the_store_is_refused_and_the_run_goes_on() -> None:
    asyncio.run(_a_version_that_is_not_in_the_store_is_refused_and_the_run_goes_on())


async def _a_version_that_is_not_in_the_store_is_refused_and_the_run_goes_on() -> None:
    app, done = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-1")
        await _asking(handle)
        unknown = c.PatchRun(patch=Raw(b'{"ops":[]}'), version="0123456789abcdef")
        with pytest.raises(weft.NotFound, match="0123456789abcdef"):
            await handle._service.tell(RunId("o-1"), unknown)
        await handle.decide("b", approved=True)
        await handle.result(timeout=60)
        assert done == ["work", "work"]


def test_what_no_host_has_is_refused_with_its_path_in_the_document() -> None:
    asyncio.run(_what_no_host_has_is_refused_with_its_path_in_the_document())


async def _what_no_host_has_is_refused_with_its_path_in_the_document() -> None:
    app, _ = _app()
    app.graph(FIRST)
    async with app:
        handle = await app.start("order", id="o-20")
        await _asking(handle)
        ops = [
            {"op": "replace", "path": "/nodes/c/step", "value": "nothing"},
            {"op": "add", "path": "/nodes/d", "value": {"workflow": "nobody"}},
            {"op": "replace", "path": "/nodes/c/next", "value": "d"},
        ]
        plan = await handle.patch(ops, dry_run=True)
        found = [(one.code, one.path) for one in plan.refusals]
        assert found == [("patch.not_hosted", "nodes.c.step"), ("patch.not_hosted", "nodes.d.workflow")]
        with pytest.raises(weft.PatchRefused, match="no host has the step nothing"):
            await handle.patch(ops)
        hosts = app.service.store.hosts
        await hosts.join(HostId("new"), lease_ms=60_000, about={"steps": ["nothing"], "workflows": ["nobody"]})
        assert (await handle.patch(ops, dry_run=True)).ok, "a host that is being rolled out has it"
        await handle.cancel()


def test_a_limit_in_time_counts_from_the_start_and_must_lie_ahead() -> None:
    app, _ = _app()
    flow = app.graph({**FIRST, "limits": {"time": "1h"}})
    world = World(app)
    run = world.start(flow, {}, id="o-21")
    world.advance("10m")

    def patch(limit: str, *, dry_run: bool = False) -> Any:
        ops = [{"op": "replace", "path": "/limits/time", "value": limit}]
        return world.perform(lambda: app.get("o-21").patch(ops, dry_run=dry_run))

    assert [one.code for one in patch("5m", dry_run=True).refusals] == ["patch.limit_passed"]
    patch("15m")
    world.advance("4m")
    assert run.status == "running"
    world.advance("2m")
    assert run.status == "failed"


def test_a_run_is_explained_after_a_patch_took_away_the_edge_that_it_had_taken() -> None:
    app, _ = _app()
    app.graph(FIRST)
    world = World(app)
    run = world.start("order", id="o-1")
    world.settle()
    ops = [
        {"op": "add", "path": "/nodes/z", "value": {"step": "work", "next": "b"}},
        {"op": "remove", "path": "/nodes/a"},
    ]
    world.perform(lambda: app.get(run.id).patch(ops))
    for is_over in (False, True):
        explanation = world.perform(lambda: app.get(run.id).explain())
        taken = [(step.node, edge.edge, edge.to) for step in explanation.diagnosis.path for edge in step.edges]
        assert taken[:2] == [("", ">a", "a"), ("a", "a>b", "b")]
        if not is_over:
            world.perform(lambda: app.get(run.id).decide("b", approved=True))
            world.settle()
    assert run.status == "completed"


def test_fields_that_a_patch_sets_are_those_of_the_state() -> None:
    asyncio.run(_fields_that_a_patch_sets_are_those_of_the_state())


async def _fields_that_a_patch_sets_are_those_of_the_state() -> None:
    app, _ = _app()
    app.graph(FIRST)
    declare = {"op": "add", "path": "/state", "value": {"limit": "integer"}}
    async with app:
        handle = await app.start("order", id="o-21")
        await _asking(handle)
        given = {"state.limit": "many", "state.limmit": 1}
        plan = await handle.patch([declare], set=given, reason="r", dry_run=True)
        found = [(one.code, one.path) for one in plan.refusals]
        assert found == [("patch.wrong_type", "set.state.limit"), ("patch.unknown_field", "set.state.limmit")]
        plan = await handle.patch([], set={"input.order": 1}, reason="r", dry_run=True)
        assert [one.code for one in plan.refusals] == ["patch.unknown_field"]
        plan = await handle.patch([declare], set={"state.limit": 5}, reason="r")
        assert plan.applied
