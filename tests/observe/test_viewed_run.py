"""A run as screens show it: what is shown after an event is what was shown when the log ended there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import weft
from weft.core.ids import RunId
from weft.core.machine import Machine
from weft.observe import viewed_run
from weft.observe.explain import explain_past
from weft.observe.held_values import held_values
from weft.observe.past_machines import PastMachines
from weft.observe.pictures.drawn import draw
from weft.observe.place_log import PlaceLog
from weft.observe.place_rows import PlaceSearch, find_places
from weft.observe.timeline import TimeWindow, timeline_rows
from weft.observe.timeline_marks import gaps_of, lines_of
from weft.observe.viewed_run import ViewedRun, ViewedRuns
from weft.testing import World

GRAPH = {
    "name": "scores",
    "input": {"items": {"type": "array"}},
    "nodes": {
        "list": {"pass": True, "next": [{"to": "score", "for_each": "${input.items}", "as": "item"}]},
        "score": {"step": "score", "with": {"n": "${item}"}, "next": "meet"},
        "meet": {"pass": True, "join": "all", "next": "check"},
        "check": {
            "step": "score",
            "with": {"n": 2},
            "repeat": {"at_most": 2},
            "next": "approve",
        },
        "approve": {"ask": {"title": "Good?"}, "next": "late"},
        "late": {"ask": {"title": "Really?"}},
    },
}


def make_app() -> weft.App:
    app = weft.App()
    failures = [ValueError("no answer")] * 2

    @app.step(retries=1)
    async def score(n: int) -> int:
        if n == 3 and failures:
            raise failures.pop()
        return n

    @app.workflow
    async def order(ctx: weft.Context, items: list[int]) -> int:
        found = await ctx.map("each", score, items, width=2)
        await ctx.sleep("1h")
        answer = await ctx.ask("approve", title="Good?")
        return sum(found) if answer.approved else await score(3)

    @app.step(gives="total", retries=1)
    async def add(n: int) -> int:
        return await score(n)

    @app.step(gives="report", retries=0)
    async def tell(total: int) -> str:
        if failures:
            raise failures.pop()
        return f"{total}"

    app.graph(GRAPH)
    app.goal("account", tell)
    return app


def play(style: str) -> tuple[World, weft.App]:
    """Play a run with failures, a retry, a question and, in a graph, a patch that moves its token."""
    app = make_app()
    world = World(app)
    if style == "goal":
        return play_goal(world, app)
    workflow = "order" if style == "code" else "scores"
    world.start(workflow, {"items": [1, 2, 3]}, id="run")
    world.advance("2h")
    assert world.perform(lambda: app.get("run").status()) == "failed"
    world.perform(lambda: app.get("run").retry())
    world.advance("2h")
    assert world.perform(lambda: app.get("run").status()) == "running"
    if style == "graph":
        world.perform(lambda: app.get("run").patch([], move=[{"node": "approve", "to": "late"}], reason="late"))
        world.settle()
    world.perform(lambda: app.get("run").decide("approve" if style == "code" else "late", approved=True))
    world.settle()
    return world, app


def play_goal(world: World, app: weft.App) -> tuple[World, weft.App]:
    """Play a goal run whose last step fails, and its retries."""
    world.start("account", {"n": 1}, id="run")
    world.settle()
    for _ in range(2):
        assert world.perform(lambda: app.get("run").status()) == "failed"
        world.perform(lambda: app.get("run").retry())
        world.settle()
    assert world.perform(lambda: app.get("run").status()) == "completed"
    return world, app


def subjects(log: PlaceLog, seq: int) -> Any:
    """Return what the log says about the places of the events of a record."""
    return [(one.kind, one.place and (one.place.number, one.place.box)) for one in log.subjects_of_record(seq)]


def shown(log: PlaceLog, seq: int) -> Any:
    """Return everything that lists and the timeline show after an event."""
    places, after = find_places(log, PlaceSearch(seq=seq))
    assert after is None
    window = TimeWindow(log.time_of(1), log.time_of(seq) + 1, 10, log.time_of(seq), gaps_of(log, seq, log.time_of(seq)))
    return msgspec.to_builtins((places, timeline_rows(log.until(seq), seq, window), lines_of(log, seq), window.gaps))


@pytest.mark.parametrize("style", ["code", "graph", "goal"])
def test_what_is_shown_after_an_event_is_what_a_log_that_ends_there_shows(style: str) -> None:
    world, app = play(style)

    async def compare() -> int:
        service = app.get("run")._service
        row = await service.row(RunId("run"))
        whole = ViewedRun(PastMachines(between=3))
        await whole.refresh(service, row)
        prefix = PlaceLog()
        async for stored in service.reader.events(row):
            prefix.add(stored)
            seq = stored.seq
            assert shown(whole.log, seq) == shown(prefix, seq), f"event {seq}"
            fresh = ViewedRun()
            fresh.log = prefix
            assert await whole.standing(service, row, seq) == await fresh.standing(service, row, seq), f"event {seq}"
            assert await whole.picture(service, row, seq) == await fresh.picture(service, row, seq), f"event {seq}"
            held = [await viewed.around(service, row, seq, held_values) for viewed in (whole, fresh)]
            assert held[0] == held[1], f"event {seq}"
            explained = [
                await explain_past(service, row, await viewed.machine(service, row, seq)) for viewed in (whole, fresh)
            ]
            assert explained[0] == explained[1], f"event {seq}"
            assert subjects(whole.log, seq) == subjects(prefix, seq), f"event {seq}"
        return row.seq

    assert world.perform(compare) > 10
    world.close()


def test_a_place_that_a_patch_left_is_not_open_any_more() -> None:
    world, app = play("graph")

    async def look() -> dict[str, str]:
        service = app.get("run")._service
        viewed = ViewedRun()
        row = await service.row(RunId("run"))
        await viewed.refresh(service, row)
        standing = await viewed.standing(service, row, row.seq)
        drawn = draw(await viewed.picture(service, row, row.seq))  # type: ignore[arg-type]  # it has begun
        assert [(group.title, group.w > 0) for group in drawn.groups] == [("branches of list", True)]
        assert standing.arrows["list>score"] == 1
        assert (standing.boxes["score"].done, standing.boxes["score"].failed) == (3, 1)
        rows, _ = find_places(viewed.log, PlaceSearch(seq=row.seq))
        return {one.place: f"{one.mark} {one.why}".strip() for one in rows}

    places = world.perform(look)
    assert places["approve"] == "skipped moved to late"
    assert places["late"] == "done"
    world.close()


def test_a_long_run_is_read_once_until_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewed_run, "LONG_RUN_EVENTS", 1)
    app = make_app()
    world = World(app)
    world.start("order", {"items": [1, 2]}, id="run")
    world.advance("2h")

    async def read(runs: ViewedRuns) -> Machine:
        service = app.get("run")._service
        alone = msgspec.structs.replace(await service.row(RunId("run")), epoch=-1)  # as if another process had the run
        machine, problem = await runs.newest(service, alone)
        assert problem is None
        assert machine is not None
        assert machine.state.seq == alone.seq
        return machine

    runs = ViewedRuns()
    first, again = (world.perform(lambda: read(runs)) for _ in range(2))
    world.perform(lambda: app.get("run").decide("approve", approved=True))
    world.settle()
    later = world.perform(lambda: read(runs))
    world.close()

    assert again is first
    assert later is not first
    assert later.state.over
