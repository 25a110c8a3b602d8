"""A fork at any event ends as its original did, and nothing irreversible is performed twice."""

from __future__ import annotations

from typing import Any

import pytest

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
    for seed in range(scale.scaled(1, 5)):
        count, wrong = forks_of(seed, stride=scale.scaled(2, 1))
        made += count
        assert wrong == []
    assert made > scale.scaled(100, 1_000)
