"""Whatever is dropped in whatever order: each piece of work is undone at most once, and at the right time."""

from __future__ import annotations

from typing import Any

import pytest

from tests import scale
from tests.graph.random_graphs import well_nested
from tests.graph.random_plays import ONCE, Play, Program, drawn_answers
from weft.core import events as e
from weft.core.effects import PerformTask
from weft.core.graph.hosted import NodeTask
from weft.core.graph.model import GraphModel
from weft.graphs.load import load_graph

UNDO = e.UndoPlan(step="take_back", takes=["result"], policy=e.Policy(attempts_max=1))


class Undoable(Program):
    """Every step can be undone."""

    def task(self, node: str) -> NodeTask:
        return NodeTask(ONCE, UNDO)


class UndoPlay(Play):
    """Notes in which order work is done and undone."""

    program = Undoable

    def answered(self, asked: PerformTask) -> dict[str, Any] | str:
        return {} if asked.takes is not None else super().answered(asked)

    def done(self) -> list[str]:
        """Places whose work succeeded, in that order."""
        places = {int(task.task): task.location for task in self.handed_out if task.takes is None}
        return [places[event.task] for event in self.log if isinstance(event, e.TaskSucceeded) and event.task in places]

    def undone(self) -> list[str]:
        return [task.location.removesuffix("!undo") for task in self.handed_out if task.takes is not None]


def played(graph: GraphModel, seed: int, failing: float) -> UndoPlay:
    play = UndoPlay(graph, drawn_answers(seed, failing=failing))
    play.to_the_end(seed)
    return play


@pytest.mark.parametrize("seed", scale.first(12, range(120)))
def test_drawn_graphs_undo_what_they_drop(seed: int) -> None:
    graph = load_graph(well_nested(seed)).graph
    for failing in (0.0, 0.15):
        play = played(graph, seed, failing)
        done, undone = play.done(), play.undone()

        assert len(undone) == len(set(undone))
        assert set(undone) <= set(done)
        assert not play.state.reversals
        if play.state.status == "failed":
            assert set(undone) == set(done), "a failed run undoes everything"
            assert after_the_end(play) == [place for place in reversed(done) if place in after_the_end(play)]


def after_the_end(play: UndoPlay) -> list[str]:
    """What was undone after the run had failed, in that order."""
    places = {int(task.task): task.location.removesuffix("!undo") for task in play.handed_out}
    over = False
    found = []
    for seq, event in enumerate(play.log, 1):
        over = over or isinstance(event, e.RunEnding) or (isinstance(event, e.FailureRaised) and not event.taker)
        if over and isinstance(event, e.UndoScheduled):
            found.append(places[seq])
    return found


@pytest.mark.parametrize("seed", scale.first(6, range(60)))
def test_a_run_in_which_nothing_is_dropped_undoes_nothing(seed: int) -> None:
    play = played(load_graph(well_nested(seed, early=False, failures=False)).graph, seed, 0.0)
    if play.state.status == "completed":
        assert play.undone() == []


def test_many_of_the_drawn_runs_drop_something_and_complete() -> None:
    plays = [played(load_graph(well_nested(seed)).graph, seed, 0.1) for seed in range(120)]
    completed = [play for play in plays if play.state.status == "completed" and play.undone()]
    assert len(completed) > 5
    for play in completed:
        assert set(play.done()) - set(play.undone()), "what was kept is kept"
