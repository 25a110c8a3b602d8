"""A hop costs what the node's edges cost, however many tokens there are: work per branch does not grow.

Counted are calls of Python functions, which do not depend on the machine.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests import scale
from tests.graph.random_plays import Play
from weft.graphs.load import load_graph

FEW, MANY = 50, 500
STEP: dict[str, Any] = {"step": "s"}
EACH = [{"to": "b", "for_each": "${output.items}"}]
JOIN = {"step": "s", "join": "all", "merge": {"how": "append", "into": "state.all"}, "next": "z"}

SHAPES: dict[str, dict[str, Any]] = {
    "a step": {"b": {**STEP, "next": "j"}},
    "no node": {"a": {**STEP, "next": [{**EACH[0], "to": "j"}]}},
    "nothing": {"b": {"pass": True, "next": "j"}},
    "a loop": {"b": {**STEP, "repeat": {"while": "output.again", "at_most": 2, "exhausted": []}, "next": "j"}},
    "a join": {
        "b": {"pass": True, "next": [{"to": ["c", "d"]}]},
        "c": {**STEP, "next": "e"},
        "d": {**STEP, "next": "e"},
        "e": {"pass": True, "join": "edges", "next": "j"},
    },
    "a fan-out": {
        "b": {"pass": True, "next": [{"to": "c", "copies": 2}]},
        "c": {**STEP, "next": "e"},
        "e": {"pass": True, "join": "all", "of": "b", "next": "j"},
    },
    "a failure": {
        "b": {**STEP, "next": "j"},
        "j": {**JOIN, "join": {"at_least": 1}, "catch": "z"},
    },
    "a width": {"a": {**STEP, "next": [{**EACH[0], "width": 7}]}, "b": {**STEP, "next": "j"}},
}


def calls_per_branch(nodes: dict[str, Any], count: int) -> float:
    """Python calls for each branch of a fan-out, from its first event to its last."""
    graph = load_graph({"nodes": {"a": {**STEP, "next": EACH}, "j": JOIN, "z": STEP, **nodes}}).graph
    fails = graph.nodes["j"].error_tiers != []

    def answer(node: str, token: str) -> dict[str, Any] | str:
        if node == "a":
            return {"items": list(range(count))}
        return "boom" if fails and node == "b" else {"again": True}

    calls = 0

    def counted(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        play = Play(graph, answer, watched=False)
        while play.open and not play.state.over:
            play.reply(next(iter(play.open)))
    finally:
        sys.setprofile(before)
    assert play.state.status == "completed"
    return calls / count


@pytest.mark.parametrize("shape", scale.sample(2, SHAPES))
def test_a_branch_with_something_in_it_costs_the_same_among_many(shape: str) -> None:
    few, many = (calls_per_branch(SHAPES[shape], count) for count in (FEW, MANY))

    assert many < few * 1.2
