"""A fork at any event ends as its original did, and nothing irreversible is performed twice."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests import scale
from tests.forks.programs import STARTS, build, play, start
from tests.forks.worlds import forks_of
from weft.testing import SimRun, World

pytestmark = scale.MARKS

UNDONE = {"broken", "book", "unbook"}
"""Work that has no result in the original: it failed, or was undone."""
PERFORMED = dict.fromkeys(STARTS, UNDONE) | {"people": {"plain"}, "graph_people": {"plain"}}
"""What forks perform that reuse results; a child that begins anew performs its own work."""
SEEDS = range(scale.scaled(1, 8))


def points(run: SimRun[Any]) -> list[int]:
    """Return the events at which a run can be forked: a graph only before what it has undone, or at its end."""
    last = max(event.seq for event in run.events)
    if not {"undo_scheduled", "node_routed"} <= {event.kind for event in run.events}:
        return list(range(1, last + 1))
    first = next(event.seq for event in run.events if event.kind == "task_scheduled")
    return [*range(1, first), last]


@pytest.mark.parametrize("name", scale.sample(3, list(STARTS)))
@pytest.mark.parametrize("effects", ["perform", "reuse"])
def test_a_fork_at_any_event_ends_like_its_original(name: str, effects: Any) -> None:
    for seed in SEEDS:
        app, ledger = build()
        world = World(app, seed)
        run = start(app, world, name, "original")
        end = play(run)
        for point in points(run)[seed % 2 :: scale.scaled(3, 1)]:
            ledger.clear()
            forked = play(run.fork(at=point, effects=effects))

            assert forked == end, f"{name}: seed {seed}, event {point}"
            assert not ledger.calls["pay"] + ledger.calls["charge"], f"{name}: seed {seed}, event {point}"
            if effects == "reuse":
                assert set(ledger.calls) <= PERFORMED[name], f"{name}: seed {seed}, event {point}"


@pytest.mark.parametrize("name", scale.sample(3, list(STARTS)))
def test_a_fork_of_a_fork_ends_like_the_first(name: str) -> None:
    app, ledger = build()
    world = World(app)
    run = start(app, world, name, "original")
    end = play(run)
    ledger.clear()
    for point in points(run)[:: scale.scaled(4, 1)]:
        fork = run.fork(at=point)
        assert play(fork) == end
        for second in points(fork)[:: scale.scaled(5, 2)]:
            assert play(fork.fork(at=second)) == end, f"{name}: event {second} of the fork at {point}"
    assert not ledger.calls["pay"] + ledger.calls["charge"]


def test_forks_at_every_event_with_and_without_edits_end_right() -> None:
    """Every program, cut at every event, in three ways; ``python -m tests.forks.soak`` makes 50,000 forks."""
    made = 0
    for seed in range(scale.scaled(2, 10)):
        count, wrong = forks_of(seed)
        made += count
        assert wrong == []
    assert made > scale.scaled(500, 2_500)


@pytest.mark.parametrize(
    ("point", "calls"),
    [
        ({"before": "work"}, 1),
        ({"before": "work", "visit": 1}, 3),
        ({"before": "work", "visit": 2}, 2),
        ({"after": "work", "visit": 2}, 1),
        ({"after": "work"}, 0),
    ],
)
def test_a_place_that_came_several_times_is_the_last_or_the_one_that_is_named(point: Any, calls: int) -> None:
    app = weft.App("memory://")

    @app.step
    async def work() -> int:
        return 1

    repeat = {"while": "true", "at_most": 3, "exhausted": "end"}
    graph = app.graph({"name": "thrice", "nodes": {"work": {"step": "work", "repeat": repeat}, "end": {"pass": True}}})
    world = World(app)
    run = world.start(graph, {}, id="original")
    world.settle()
    assert len(world.calls(work)) == 3

    fork = run.fork(**point)

    world.settle()
    assert fork.status == "completed"
    assert len(world.calls(work)) == 3 + calls
    with pytest.raises(weft.NotFound):
        run.fork(before="work", visit=4)
