"""Bulks that patch, fork and delete runs, and bulks that are reviewed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import weft
from tests.runtime.test_bulk import count, events, plan, statuses
from weft.runtime.deletion import DeletionService
from weft.testing import World, crash_everywhere

GRAPH: dict[str, Any] = {
    "weft": "graph/1",
    "name": "leads",
    "nodes": {
        "wait": {"receive": "go", "next": "price"},
        "price": {"step": "price", "with": {"cents": 100}, "next": "bill"},
        "bill": {"receive": "paid"},
    },
}
MENDED = {"ops": [{"op": "replace", "path": "/nodes/price/with/cents", "value": 90}]}


def new_app() -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def price(cents: int) -> int:
        return cents

    @app.workflow
    async def job(name: str) -> str:
        return name

    app.graph(GRAPH)
    return app


@pytest.fixture
def world() -> Iterator[World]:
    made = World(new_app())
    yield made
    made.close()


def start(world: World, workflow: str, count: int, **given: Any) -> list[str]:
    found = world.app.registered.runnable_named(workflow)
    return [world.start(found, given, id=f"{workflow}-{n}").id for n in range(count)]


def applied(world: World, bulk: weft.Bulk, **said: Any) -> weft.BulkResult:
    key = world.new_key()

    async def done() -> weft.BulkResult:
        return await (await bulk.apply(key=key, **said)).result()

    return world.perform(done)


def test_many_runs_are_patched_as_their_dry_runs_say(world: World) -> None:
    runs = start(world, "leads", 3)
    world.perform(lambda: world.app.get("leads-1").send("go"))  # it has passed price: nothing is repeated there
    world.settle()
    gone = {"ops": [{"op": "remove", "path": "/nodes/bill"}, {"op": "remove", "path": "/nodes/price/next"}]}

    refused = plan(world, "patch", *runs, options={"patch": gone})
    bulk = plan(world, "patch", workflow="leads", options={"patch": MENDED})

    assert (refused.would_apply, [group.code for group in refused.refused]) == (2, ["patch.node_removed"])
    assert bulk.would_apply == 3
    result = applied(world, bulk, by="ann", reason="too dear")
    assert result.applied == 3
    assert [(event["by"], event["reason"]) for event in events(world, "leads-0", "run_patched")] == [
        ("ann", "too dear")
    ]
    for run in ("leads-0", "leads-1", "leads-2"):
        world.perform(lambda run=run: world.app.get(run).send("go"))
    calls = [call.args for call in world.calls(world.app.registered.find_step("price"))]
    assert sorted(calls, key=str) == sorted([{"cents": 100}, {"cents": 90}, {"cents": 90}], key=str)


def test_a_run_that_is_already_as_a_patch_would_leave_it_is_left_alone(world: World) -> None:
    start(world, "leads", 2)
    applied(world, plan(world, "patch", "leads-0", options={"patch": MENDED}))

    bulk = plan(world, "patch", workflow="leads", options={"patch": MENDED})

    assert (bulk.would_apply, bulk.unchanged) == (1, 1)
    assert applied(world, bulk).applied == 2
    assert [len(events(world, f"leads-{n}", "run_patched")) for n in range(2)] == [1, 1]


@pytest.mark.parametrize("said", [{"set": {"state.limit": 5}}, {"restart": ["wait"]}])
def test_a_patch_that_only_tells_the_runs_something_is_applied(world: World, said: dict[str, Any]) -> None:
    start(world, "leads", 2)

    bulk = plan(world, "patch", workflow="leads", options={"patch": {"ops": [], "reason": "r", **said}})

    assert (bulk.would_apply, bulk.unchanged) == (2, 0)
    assert applied(world, bulk).applied == 2
    assert len(events(world, "leads-0", "run_patched")) == 1


def test_a_run_that_has_moved_on_since_the_dry_run_is_refused(world: World) -> None:
    start(world, "leads", 2)
    bulk = plan(world, "patch", workflow="leads", options={"patch": {**MENDED, "reason": "r", "restart": ["wait"]}})
    world.perform(lambda: world.app.get("leads-1").send("go"))
    world.settle()

    result = applied(world, bulk)

    assert result.applied == 1
    (group,) = result.refused
    assert group.example == "leads-1"


def test_a_patch_of_many_is_undone_in_many(world: World) -> None:
    start(world, "leads", 2)
    applied(world, plan(world, "patch", workflow="leads", options={"patch": MENDED}))

    result = applied(world, plan(world, "patch", workflow="leads", options={"undo": True}))

    assert result.applied == 2
    assert [event.get("undoes") for event in events(world, "leads-0", "run_patched")] == [None, 1]


def test_many_runs_are_forked_once_each() -> None:
    def scenario(world: World) -> None:
        start(world, "job", 2, name="a")
        world.settle()
        assert applied(world, plan(world, "fork", workflow="job", options={"input": {"name": "b"}})).applied == 2
        found = statuses(world)
        assert len(found) == 4
        assert set(found.values()) == {"completed"}

    assert crash_everywhere(new_app(), scenario) > 10


def test_arguments_that_a_workflow_does_not_take_are_refused_in_the_dry_run(world: World) -> None:
    start(world, "job", 2, name="a")
    world.settle()

    bulk = plan(world, "fork", workflow="job", options={"input": {"nmae": "b"}})

    assert (bulk.would_apply, [(group.code, group.count) for group in bulk.refused]) == (0, [("value.wrong_type", 2)])
    assert "nmae" in bulk.refused[0].message


def test_many_failed_runs_are_forked_to_a_version_that_mends_them() -> None:
    app = new_app()
    app.graph({"name": "bad", "nodes": {"a": {"step": "price", "with": {"cents": "many"}}}})
    world = World(app)
    start(world, "bad", 2)
    mend = {"op": "replace", "path": "/nodes/a/with/cents", "value": 1}
    world.perform(lambda: app.workflows.patch("bad", [mend], tag="fixed"))

    bulk = plan(world, "fork", status="failed", options={"failure": True, "to": "fixed"})

    assert applied(world, bulk, by="ann", reason="mended").applied == 2
    world.settle()
    assert sorted(statuses(world).values()) == ["completed", "completed", "failed", "failed"]
    world.close()


def test_many_runs_are_deleted_once_each() -> None:
    def scenario(world: World) -> None:
        start(world, "job", 2, name="a")
        start(world, "leads", 1)
        world.settle()
        bulk = plan(world, "delete", "job-0", "job-1", "leads-0")
        assert (bulk.would_apply, [group.code for group in bulk.refused]) == (2, ["run.not_over"])
        result = applied(world, bulk, reason="old")
        assert (result.applied, [group.code for group in result.refused]) == (2, ["run.not_over"])
        assert list(statuses(world)) == ["leads-0"]

    assert crash_everywhere(new_app(), scenario) > 10


def test_a_bulk_that_deletes_says_why_and_spares_what_is_kept(world: World) -> None:
    start(world, "job", 2, name="a")
    world.perform(lambda: DeletionService(world.app.service).keep("job-1", "evidence"))  # type: ignore[arg-type]
    bulk = plan(world, "delete", workflow="job")
    assert [group.code for group in bulk.refused] == ["run.kept"]

    with pytest.raises(weft.UsageError, match="must say why") as caught:
        world.perform(bulk.apply)

    assert caught.value.code == "bulk.no_reason"
    assert applied(world, bulk, reason="old").applied == 1
    assert list(statuses(world)) == ["job-1"]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("patch", {}),
        ("patch", {"patch": {}, "undo": True}),
        ("patch", {"other": 1}),
        ("fork", {"id": "x"}),
        ("fork", {"at": "one"}),
        ("fork", {"other": 1}),
        ("delete", {"force": True}),
    ],
)
def test_options_are_checked_before_anything_starts(world: World, verb: str, options: dict[str, Any]) -> None:
    with pytest.raises(weft.UsageError) as caught:
        plan(world, verb, "job-0", options=options)
    assert caught.value.code == "bulk.bad_option"


def test_a_reviewed_bulk_waits_for_somebody_else_to_agree(world: World) -> None:
    start(world, "leads", 2)
    bulk = plan(world, "pause", workflow="leads")
    handle = world.perform(lambda: bulk.apply(by="ann", reason="why", review=["team:ops", "ann"]))
    world.settle()
    assert set(statuses(world).values()) == {"running"}

    with pytest.raises(weft.NotAllowed):
        world.perform(lambda: handle.decide("review", approved=True, by="ann"))
    world.perform(lambda: handle.decide("review", approved=True, by="team:ops"))

    result = world.perform(handle.result)
    assert (result.applied, result.approved_by) == (2, ["team:ops"])
    assert set(statuses(world).values()) == {"paused"}


def test_a_bulk_that_is_rejected_does_nothing(world: World) -> None:
    start(world, "leads", 1)
    bulk = plan(world, "pause", workflow="leads")
    handle = world.perform(lambda: bulk.apply(by="ann", review=["bob"]))
    world.settle()
    world.perform(lambda: handle.decide("review", approved=False, by="bob", reason="not now"))

    result = world.perform(handle.result)

    assert (result.applied, result.rejected) == (0, "bob: not now")
    assert statuses(world) == {"leads-0": "running"}
    assert world.perform(lambda: count(world, "weft.bulk")) == 1
