"""A join fires once, whatever the order in which its branches come: all orders of up to six."""

from __future__ import annotations

from itertools import islice, permutations
from typing import Any

import pytest

from tests import scale
from tests.graph.random_plays import Play
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import innermost_branch
from weft.graphs.load import load_graph

pytestmark = scale.MARKS

MOST = scale.scaled(4, 6)


def answer(node: str, token: str) -> dict[str, Any]:
    return {"from": node}


def fan(width: int, **join: Any) -> GraphModel:
    """A fan-out to so many nodes, each a branch of its own, and a join."""
    names = [f"b{index}" for index in range(width)]
    branches = {name: {"step": "s", "next": "j"} for name in names}
    joined = {"step": "s", "next": "z", **join}
    return load_graph(
        {"nodes": {"a": {"pass": True, "next": [{"to": names}]}, **branches, "j": joined, "z": {"step": "s"}}}
    ).graph


def each(width: int, **join: Any) -> GraphModel:
    """A for_each of so many items: one node that all branches run."""
    joined = {"step": "s", "next": "z", **join}
    split = {"pass": True, "next": [{"to": "b", "copies": width}]}
    branch = {"step": "s", "next": "j"}
    return load_graph({"nodes": {"a": split, "b": branch, "j": joined, "z": {"step": "s"}}}).graph


def in_order(graph: GraphModel, order: tuple[int, ...], late: int = 0) -> Play:
    """Answer the branches in this order; of those that come after the join fired, ``late`` before its own task."""
    play = Play(graph, answer)
    tasks = play.numbers()
    assert len(tasks) == len(order)
    for place in order:
        if tasks[place] in play.open:
            play.reply(tasks[place])
    return play.to_the_end(late)


@pytest.mark.parametrize("width", range(2, MOST + 1))
def test_an_edge_join_fires_once_in_every_order(width: int) -> None:
    graph = fan(width, join="edges")
    for order in permutations(range(width)):
        play = in_order(graph, order)
        assert (play.state.status, play.state.executed["j"], play.state.executed["z"]) == ("completed", 1, 1), order


@pytest.mark.parametrize("draw", [fan, each])
@pytest.mark.parametrize("width", range(2, MOST + 1))
def test_a_fan_in_for_all_fires_once_in_every_order_with_the_same_value(width: int, draw: Any) -> None:
    graph = draw(width, join="all", merge={"how": "keyed_by_branch", "into": "state.all"})
    seen = set()
    for order in permutations(range(width)):
        play = in_order(graph, order)
        assert (play.state.status, play.state.executed["j"], play.state.executed["z"]) == ("completed", 1, 1), order
        seen.add(str(play.state.data))
    assert len(seen) == 1


@pytest.mark.parametrize("late", ["cancel", "abandon", "merge"])
@pytest.mark.parametrize("need", range(1, 6))
def test_a_fan_in_for_some_fires_once_with_the_first_that_come(need: int, late: str) -> None:
    width = 5
    graph = fan(width, join={"at_least": need}, late=late, merge={"how": "keyed_by_branch", "into": "state.first"})
    for order in permutations(range(width)):
        play = in_order(graph, order)
        assert (play.state.status, play.state.executed["j"], play.state.executed["z"]) == ("completed", 1, 1), order
        winners = sorted(order if late == "merge" else order[:need])
        assert list(play.state.data["first"]) == [str(index) for index in winners], order
        performed = sum(play.state.executed.get(f"b{index}", 0) for index in range(width))
        assert performed == (need if late == "cancel" else width), order


def test_joins_inside_branches_fire_once_each_in_every_order() -> None:
    """Two branches of three nodes each, joined by their edges and then by a fan-in: all orders of six."""
    nodes: dict[str, Any] = {"a": {"pass": True, "next": [{"to": "s", "copies": 2}]}}
    nodes["s"] = {"pass": True, "next": [{"to": ["x", "y", "w"]}]}
    for name in ("x", "y", "w"):
        nodes[name] = {"step": "s", "next": "e"}
    nodes["e"] = {"pass": True, "join": "edges", "next": "j"}
    nodes["j"] = {"step": "s", "join": "all"}
    graph = load_graph({"nodes": nodes}).graph
    for order in islice(permutations(range(6)), 0, None, scale.scaled(20, 1)):
        play = in_order(graph, order)
        assert (play.state.status, play.state.executed["e"], play.state.executed["j"]) == ("completed", 2, 1), order


def test_branches_are_told_apart_by_their_index() -> None:
    play = Play(each(3, join="all"), answer)

    places = [innermost_branch(play.state.tokens[play.state.by_task[number]].path) for number in play.numbers()]

    assert [place.n for place in places if place is not None] == [0, 1, 2]
