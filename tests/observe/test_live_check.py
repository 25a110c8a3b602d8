"""``check --live``: every open run against other code, grouped, without touching anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.testing
from weft.authoring.live_runs import change_to_try, check_runs
from weft.core.ids import RunId
from weft.observe.live_check import OpenRuns
from weft.testing import World


def code_app(*, first: str = "charge", version: str = "1") -> weft.App:
    app = weft.App("memory://")

    async def pay(name: str) -> str:
        return name

    charge = app.step(name=first)(pay)

    @app.workflow(version=version)
    async def order(ctx: weft.Context, name: str) -> str:
        await charge(name)
        await ctx.receive("go")
        return name

    return app


GRAPH: dict[str, Any] = {
    "weft": "graph/1",
    "name": "leads",
    "nodes": {
        "wait": {"receive": "go", "next": "price"},
        "price": {"step": "price", "with": {"name": "a"}, "next": "ship"},
        "ship": {"step": "ship", "with": {"name": "b"}},
    },
}


def graph_app(document: dict[str, Any] = GRAPH, **parameters: str) -> weft.App:
    app = weft.App("memory://")
    for step in ("price", "ship"):
        names: dict[str, Any] = {}
        exec(f"async def act({parameters.get(step, 'name: str')}) -> str: return 'x'", names)
        if parameters.get(step) != "":
            app.step(name=step)(names["act"])
    app.graph(document)
    return app


def goal_app(needs: str = "order", *, gone: bool = False) -> weft.App:
    app = weft.App("memory://")
    names: dict[str, Any] = {"weft": weft}
    exec(f"async def total({needs}: str, paid: int) -> int: return 1", names)
    exec("async def paid(ctx: weft.Context, order: str) -> int: return await ctx.receive('paid')", names)
    if not gone:
        app.step(gives="total")(names["total"])
    app.workflow(gives="paid")(names["paid"])
    app.goal("price", "total") if not gone else app.goal("price", "paid")
    return app


def found(old: weft.App, new: weft.App, begin: Callable[[World], Any], **query: Any) -> weft.LiveReport:
    world = World(old)
    begin(world)
    world.settle()
    writes = world.writes
    report = world.perform(lambda: check_runs(new.catalogue(), world.app.service, OpenRuns(**query)))
    assert world.writes == writes
    world.close()
    return report


def orders(count: int) -> Callable[[World], None]:
    def begin(world: World) -> None:
        for n in range(count):
            world.start(world.app.registered.runnable_named("order"), {"name": f"o-{n}"}, id=f"o-{n}")

    return begin


def groups(report: weft.LiveReport) -> list[tuple[str, str, str, int]]:
    return [(one.workflow, one.verdict, one.place, one.count) for one in report.groups]


def test_runs_that_fit_are_one_line() -> None:
    report = found(code_app(), code_app(), orders(3))

    assert groups(report) == [("order", "fits", "", 3)]
    assert report.ok
    assert report.checked == 3
    assert "What a run would do next cannot be seen." in str(report)


def test_runs_that_diverge_are_grouped_with_an_example_and_both_sides() -> None:
    changed = found(code_app(), code_app(first="charge_card"), orders(3))

    (group,) = changed.groups
    assert (group.verdict, group.place, group.count) == ("diverges", "charge", 3)
    assert (group.recorded, group.asked) == ("the step `charge`", "charge_card")
    assert group.example in {"o-0", "o-1", "o-2"}
    assert not changed.ok


def test_entries_that_the_code_passes_by_are_a_note() -> None:
    new = weft.App("memory://")

    @new.workflow
    async def order(ctx: weft.Context, name: str) -> str:
        await ctx.receive("go")
        return name

    report = found(code_app(), new, orders(2))

    assert groups(report) == [("order", "unvisited", "charge", 2)]
    assert report.ok


def test_a_run_that_its_host_could_not_read_does_not_fit() -> None:
    def begin(world: World) -> None:
        orders(2)(world)
        world.settle()

        async def mark() -> None:
            service = world.app.service
            row = await service.row(RunId("o-1"))
            await service.store.log.mark_fault(row.uid, "a version is missing", status="held")

        world.perform(mark)

    report = found(code_app(), code_app(), begin)

    assert groups(report) == [("order", "unreadable", "", 1), ("order", "fits", "", 1)]
    assert "o-1 cannot be read: a version is missing" in str(report)
    assert not report.ok


def test_a_version_that_is_gone_is_not_hosted() -> None:
    report = found(code_app(), code_app(version="2"), orders(2))

    assert groups(report) == [("order", "not hosted", "", 2)]
    assert not report.ok
    assert "no order in version 1" in report.groups[0].message


def test_filters_and_samples() -> None:
    assert found(code_app(), code_app(), orders(3), workflow="other").checked == 0
    assert found(code_app(), code_app(), orders(3), status="paused").checked == 0
    sampled = found(code_app(), code_app(), orders(9), sample=2)
    assert (sampled.checked, sampled.left_out) == (4, 5)


def test_the_runs_of_weft_itself_are_left_out_unless_they_are_named() -> None:
    def begin(world: World) -> None:
        world.perform(lambda: world.app.schedules.add("nightly", "order", {"name": "n"}, cron="0 3 * * *"))

    assert found(code_app(), code_app(), begin).checked == 0
    assert groups(found(code_app(), code_app(), begin, workflow="weft.schedule")) == [("weft.schedule", "fits", "", 1)]


def leads(world: World) -> None:
    world.start(world.app.registered.runnable_named("leads"), {}, id="l-1")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ("leads", "fits", "", 1)),
        ({"ship": ""}, ("leads", "not hosted", "ship", 1)),
        ({"price": "name: str, more: int"}, ("leads", "input", "price", 1)),
        ({"price": "title: str"}, ("leads", "input", "price", 1)),
    ],
)
def test_what_the_rest_of_a_graph_names_must_be_here(parameters: dict[str, str], expected: Any) -> None:
    report = found(graph_app(), graph_app(**parameters), leads)
    assert groups(report) == [expected]


def test_a_graph_whose_steps_behind_the_run_are_gone_still_fits() -> None:
    def begin(world: World) -> None:
        run = world.start(world.app.registered.runnable_named("leads"), {}, id="l-1")
        run.send("go")

    document = {**GRAPH, "nodes": {**GRAPH["nodes"], "ship": {"receive": "end"}}}

    assert groups(found(graph_app(document), graph_app(document, price=""), begin)) == [("leads", "fits", "", 1)]


def test_planned_steps_of_a_goal_must_be_the_same() -> None:
    def begin(world: World) -> None:
        world.start(world.app.registered.runnable_named("price"), {"order": "o"}, id="g-1")

    def of_goal(report: weft.LiveReport) -> list[tuple[str, str]]:
        return [(one.verdict, one.place) for one in report.groups if one.workflow == "price"]

    assert of_goal(found(goal_app(), goal_app(), begin)) == [("fits", "")]
    changed = found(goal_app(), goal_app("bill"), begin)
    assert of_goal(changed) == [("changed", "total")]
    assert [(one.recorded, one.asked) for one in changed.groups if one.recorded] == [
        ("needs order, paid", "needs bill, paid")
    ]
    assert of_goal(found(goal_app(), goal_app(gone=True), begin)) == [("not hosted", "total")]


def test_an_app_that_is_not_running_checks_its_store(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    old, new = code_app(), code_app(first="charge_card")
    old.url = new.url = url

    async def main() -> weft.LiveReport:
        async with old:
            await old.start("order", {"name": "a"}, id="o-1")
            assert (await old.check_live()).ok
        return await new.check_live()

    assert [one.verdict for one in asyncio.run(main()).groups] == ["diverges"]


# --- changes that are tried on each run --------------------------------------------------------------------------


def changed(old: weft.App, new: weft.App, begin: Callable[[World], Any], **change: Any) -> weft.LiveReport:
    world = World(old)
    begin(world)
    world.settle()
    writes = world.writes
    tried, query = change_to_try(change.pop("to", None), OpenRuns(workflow=change.pop("workflow", None)), **change)
    report = world.perform(lambda: check_runs(new.catalogue(), world.app.service, query, change=tried))
    assert world.writes == writes
    world.close()
    return report


def two_versions(second: str) -> weft.App:
    """The old version of the code, and one beside it whose step has another name."""
    app = code_app(first="charge")
    names = code_app(first=second, version="2").registered

    async def pay(name: str) -> str:
        return name

    if second != "charge":
        app.step(name=second)(pay)
    app.workflow(name="order", version="2")(names.known("order", "2").fn)  # type: ignore[union-attr]
    return app


@pytest.mark.parametrize(
    ("second", "to", "expected"),
    [
        ("charge", "2", ("order", "fits", "", 2)),
        ("charge_card", "2", ("order", "diverges", "charge", 2)),
        ("charge", "3", ("order", "not hosted", "", 2)),
    ],
)
def test_code_runs_are_replayed_against_the_version_that_they_would_follow(second: str, to: str, expected: Any) -> None:
    report = changed(code_app(), two_versions(second), orders(2), to=to, workflow="order")

    assert groups(report) == [expected]
    assert report.ok is (expected[1] == "fits")
    if expected[1] == "diverges":
        assert (report.groups[0].recorded, report.groups[0].asked) == ("the step `charge`", "charge_card")
        assert "weft fork o-1 --before charge --to 2" in report.groups[0].message


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({"wait": {"receive": "go", "next": "ship"}, "ship": GRAPH["nodes"]["ship"]}, ("leads", "fits", "", 1)),
        ({"price": GRAPH["nodes"]["ship"]}, ("leads", "patch.node_removed", "wait", 1)),
        (
            {**GRAPH["nodes"], "ship": {"step": "shop", "with": {"name": "b"}}},
            ("leads", "not hosted", "ship", 1),
        ),
    ],
)
def test_graph_runs_get_the_dry_run_of_a_document_as_a_patch(nodes: Any, expected: Any) -> None:
    report = changed(graph_app(), graph_app(), leads, to={**GRAPH, "nodes": nodes})

    assert groups(report) == [expected]
    assert "where a token is Keep" not in report.groups[0].message


def test_goal_runs_are_planned_again_as_a_trial() -> None:
    def begin(world: World) -> None:
        world.start(world.app.registered.runnable_named("price"), {"order": "o"}, id="g-1")

    def of_goal(report: weft.LiveReport) -> list[tuple[str, str]]:
        return [(one.verdict, one.place) for one in report.groups if one.workflow == "price"]

    assert of_goal(changed(goal_app(), goal_app(), begin, replan=True)) == [("fits", "")]
    assert of_goal(changed(goal_app(), goal_app("bill"), begin, replan=True)) == [("patch.missing", "bill")]


def test_a_change_that_cannot_be_is_said_at_once() -> None:
    with pytest.raises(weft.UsageError, match="Name the workflow"):
        changed(code_app(), code_app(), orders(1), to="2")
    with pytest.raises(weft.BadPatch, match="not valid"):
        changed(code_app(), code_app(), orders(1), to={"ops": []}, workflow="order")
    with pytest.raises(weft.NotFound, match="nowhere"):
        changed(graph_app(), graph_app(), leads, to="nowhere", workflow="leads")


def test_one_bundle_per_group_is_kept_and_can_be_replayed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    old, new = code_app(), code_app(first="charge_card")
    old.url = new.url = url

    async def main() -> weft.LiveReport:
        async with old:
            for n in range(2):
                run = await old.start("order", {"name": "a"}, id=f"o-{n}")
                while "message_awaited" not in [event.kind async for event in run.events()]:
                    await asyncio.sleep(0.01)
        return await new.check_live(save=tmp_path / "live")

    (group,) = asyncio.run(main()).groups

    assert group.file == str(tmp_path / "live" / "order-1-diverges-charge.zip")
    weft.testing.replay(old, group.file)
    with pytest.raises(weft.Diverged):
        weft.testing.replay(new, group.file)
