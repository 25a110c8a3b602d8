"""What must hold of every graph and every order of completions, on graphs drawn at random.

A failure prints the seeds: the graph's, and the order's.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.graph.random_graphs import NODES_MAX, planted, timed, well_nested, wild
from tests.graph.random_plays import Play, drawn_answers, replayed
from tests.scale import MARKS, scaled
from weft.core.graph.derived_names import RUN_SCOPE
from weft.core.graph.model import GraphModel
from weft.core.graph.soundness import check_soundness
from weft.errors import BadGraph
from weft.graphs.load import load_graph

PARTS = scaled(2, 6)
GRAPHS = range(scaled(12, 520))
EARLY = range(scaled(4, 100))
PLANTED = range(scaled(10, 150))
WILD = range(scaled(40, 1200))
pytestmark = MARKS
FAILING = (0.0, 0.1, 0.3)


def parts(seeds: range) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("seeds", [seeds[part::PARTS] for part in range(PARTS)], ids=lambda part: part.start)


@cache
def drawn(seed: int, *, early: bool = True, failures: bool = True) -> GraphModel:
    return load_graph(well_nested(seed, early=early, failures=failures)).graph


def played(graph: GraphModel, seed: int, order: int) -> Play:
    """A run in which, from one order to the next, more tasks fail. Everything is looked at on the way."""
    return Play(graph, drawn_answers(seed, failing=FAILING[order % len(FAILING)])).to_the_end(order)


def test_the_graphs_have_everything_in_them() -> None:
    graphs = [drawn(seed) for seed in GRAPHS]
    nodes = [node for graph in graphs for node in graph.nodes.values()]
    fan_ins = [node.fan_in for node in nodes if node.fan_in is not None]

    assert max(len(graph.nodes) for graph in graphs) >= NODES_MAX
    assert sum(node.join == "edges" for node in nodes) > len(GRAPHS) / 2
    assert {fan_in.need.kind for fan_in in fan_ins} == {"all", "count", "percent"}
    assert {fan_in.early for fan_in in fan_ins} == {"cancel", "abandon", "late_merge"}
    assert sum(node.repeat is not None for node in nodes) > len(GRAPHS) / 4
    assert sum(bool(node.error_tiers) for node in nodes) > len(GRAPHS) / 6
    assert sum(edge.each is not None for graph in graphs for edge in graph.edges.values()) > len(GRAPHS) / 4
    assert any(loop.parent for graph in graphs for loop in graph.loops.values())
    assert any(node.opening and RUN_SCOPE not in node.scopes for node in nodes)


@parts(GRAPHS)
def test_every_run_ends_and_its_counts_are_right_at_every_moment(seeds: range) -> None:
    """Tokens are made once and consumed once, frames add up, and what is outstanding is what was asked for."""
    for seed in seeds:
        graph = drawn(seed)
        for order in range(3):
            play = played(graph, seed, order)
            assert play.code != "deadlock", (seed, order, play.state.failure)


@parts(GRAPHS)
def test_a_run_that_is_replayed_is_the_same_run(seeds: range) -> None:
    """From its first event on, and from a snapshot taken anywhere."""
    for seed in seeds:
        play = played(drawn(seed), seed, seed)
        live = play.machine.snapshot()
        assert replayed(play.graph, play.log) == live, seed
        for place, snapshot in play.snapshots[:5]:
            assert replayed(play.graph, play.log[place:], snapshot) == live, (seed, place)


@parts(GRAPHS)
def test_where_all_are_waited_for_the_order_of_completions_does_not_matter(seeds: range) -> None:
    for seed in seeds:
        graph = drawn(seed, early=False, failures=False)
        answers = drawn_answers(seed)
        first, *others = [Play(graph, answers, watched=False).to_the_end(order) for order in range(4)]
        for other in others:
            assert other.state.status == first.state.status, seed
            if first.state.status == "completed":
                assert other.result() == first.result(), seed


@parts(EARLY)
def test_well_nested_graphs_are_sound(seeds: range) -> None:
    for seed in seeds:
        verdict = check_soundness(drawn(seed))
        assert verdict.outcome == "sound", (seed, verdict.flaws)


@parts(GRAPHS)
def test_well_nested_graphs_that_wait_for_all_are_sound(seeds: range) -> None:
    for seed in seeds:
        verdict = check_soundness(drawn(seed, early=False, failures=False))
        assert verdict.outcome == "sound", (seed, verdict.flaws)


@parts(PLANTED)
def test_every_planted_deadlock_is_found(seeds: range) -> None:
    for seed in seeds:
        verdict = check_soundness(load_graph(planted(seed)).graph)
        assert "deadlock" in [flaw.code for flaw in verdict.flaws], seed


def test_planted_deadlocks_are_real() -> None:
    """They are not only found: runs get into them."""
    stuck = 0
    for seed in PLANTED:
        graph = load_graph(planted(seed)).graph
        runs = (Play(graph, drawn_answers(draw), watched=False).to_the_end(draw) for draw in range(6))
        stuck += any(run.code == "deadlock" for run in runs)
    assert stuck > len(PLANTED) / 2


def test_graphs_that_are_called_sound_never_hang() -> None:
    """Wild ones, of which many do not compile and some get stuck."""
    outcomes = {"sound": 0, "unsound": 0, "unknown": 0}
    for seed in WILD:
        try:
            graph = load_graph(wild(seed)).graph
        except BadGraph:
            continue
        verdict = check_soundness(graph)
        outcomes[verdict.outcome] += 1
        found = "deadlock" in [flaw.code for flaw in verdict.flaws]
        stuck = [order for order in range(3) if played(graph, seed, order).code == "deadlock"]
        assert found or not stuck, (seed, stuck)
    assert outcomes["sound"] > len(WILD) / 6
    assert outcomes["unsound"] > len(WILD) / 120


TIMED = range(scaled(4, 240))
"""Graphs whose joins have deadlines. Timers fire whenever the order says so, also long before tasks are answered."""


@parts(TIMED)
def test_deadlines_of_joins_leave_every_run_an_end_and_its_counts_right(seeds: range) -> None:
    for seed in seeds:
        graph = load_graph(timed(well_nested(seed), seed)).graph
        for order in range(3):
            play = played(graph, seed, order)
            assert play.code != "deadlock", (seed, order, play.state.failure)
            assert not play.state.timers, (seed, order)
        live = play.machine.snapshot()
        assert replayed(play.graph, play.log) == live, seed
        for place, snapshot in play.snapshots[:3]:
            assert replayed(play.graph, play.log[place:], snapshot) == live, (seed, place)


@parts(range(scaled(2, 60)))
def test_well_nested_graphs_with_deadlines_are_not_unsound(seeds: range) -> None:
    for seed in seeds:
        verdict = check_soundness(load_graph(timed(well_nested(seed), seed)).graph)
        assert "deadlock" not in [flaw.code for flaw in verdict.flaws], (seed, verdict.flaws)


def test_wild_graphs_with_deadlines_that_are_called_sound_never_hang() -> None:
    fired = 0
    for seed in WILD:
        try:
            graph = load_graph(timed(wild(seed), seed)).graph
        except BadGraph:
            continue
        found = "deadlock" in [flaw.code for flaw in check_soundness(graph, work_max=50_000).flaws]
        plays = [played(graph, seed, order) for order in range(2)]
        fired += sum(getattr(event, "join", "") != "" for play in plays for event in play.log)
        assert found or all(play.code != "deadlock" for play in plays), seed
    assert fired > len(WILD) / 60
