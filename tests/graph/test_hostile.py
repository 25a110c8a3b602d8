"""Documents that are large or twisted on purpose: compiled or refused, and checked or given up, in about a second.

Time differs from machine to machine, so lines of Python are counted instead. What the limits must catch is a cost that
grows with the square.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.scale import first
from tests.work import lines_of
from weft.core.goal.checks import BadStep
from weft.core.graph.model import GraphModel
from weft.core.graph.soundness import check_soundness
from weft.errors import BadGraph
from weft.goals import load_steps
from weft.graphs.load import load_graph
from weft.runtime.goal_language import GOAL_LANGUAGES

NODES = 2_000
COMPILED_MAX = 6_000_000
"""Lines: twice what the most costly of the documents needs. Two lines for each pair of nodes are more."""
WORK_MAX = 50_000
CHECKED_MAX = 20_000_000
"""A quarter of the usual budget of a check, and the lines: twice what the most costly document needs to use it up."""
STEP: dict[str, Any] = {"step": "s"}
Nodes = dict[str, dict[str, Any]]


def chain(count: int, **fields: Any) -> Nodes:
    nodes = {f"n{i}": {**STEP, **fields, "next": f"n{i + 1}"} for i in range(count)}
    return {**nodes, f"n{count}": dict(STEP)}


def back_to(node: str) -> dict[str, Any]:
    return {"while": "output.again", "at_most": 2, "back_to": node}


def loops_in_loops(count: int) -> Nodes:
    nodes = chain(count - 1)
    for i in range(count // 2, count):
        nodes[f"n{i}"]["repeat"] = back_to(f"n{count - 1 - i}")
    return nodes


def loops_to_the_first(count: int) -> Nodes:
    nodes = chain(count - 1)
    for i in range(1, count):
        nodes[f"n{i}"]["repeat"] = back_to("n0")
    return nodes


def fan_outs_in_fan_outs(depth: int) -> Nodes:
    nodes: Nodes = {"x": {**STEP, "next": f"j{depth - 1}"}}
    for i in range(depth):
        inner = f"o{i + 1}" if i < depth - 1 else "x"
        nodes[f"o{i}"] = {"pass": True, "next": [{"to": inner, "for_each": "${input.items}"}]}
        nodes[f"j{i}"] = {"pass": True, "join": "all", "next": f"j{i - 1}" if i else []}
    return nodes


def wide(count: int, join: Any) -> Nodes:
    branches = {f"b{i}": {**STEP, "next": "j"} for i in range(count)}
    return {"a": {"pass": True, "next": [{"to": list(branches)}]}, **branches, "j": {"pass": True, "join": join}}


def many_ways(count: int, **join: Any) -> Nodes:
    ways = [{"to": "b", "when": f"output.x{i}"} for i in range(count)]
    return {"a": {**STEP, "fan_out": "all", "next": ways}, "b": {**STEP, **join}}


COMPILED = {
    "a chain": chain(NODES - 1),
    "loops behind each other": chain(NODES - 1, repeat={"while": "output.again", "at_most": 3}),
    "a hundred loops in each other": loops_in_loops(200),
    "a hundred fan-outs in each other": fan_outs_in_fan_outs(100),
    "dependencies in a row": {f"n{i}": {**STEP, "dependencies": [f"n{i - 1}"] if i else []} for i in range(NODES)},
    "dependencies on all before": {f"n{i}": {**STEP, "dependencies": [f"n{j}" for j in range(i)]} for i in range(150)},
    "many ways between two nodes": many_ways(500),
    "many ways into a join": many_ways(500, join="edges"),
    "a way for errors at every node": {**chain(NODES, catch="h"), "h": STEP},
    "many branches": wide(NODES, "all"),
    "many branches and a join of edges": wide(NODES, "edges"),
    "many branches of which three count": wide(NODES, {"at_least": 3}),
    "tokens that multiply": {
        **{f"n{i}": {**STEP, "next": [{"to": [f"n{i + 1}", f"n{i + 2}"]}]} for i in range(59)},
        "n59": {**STEP, "next": "n60"},
        "n60": STEP,
    },
}

REFUSED = {
    "loops in loops": loops_in_loops(NODES),
    "loops that all go back to the first node": loops_to_the_first(NODES),
    "fan-outs in fan-outs": fan_outs_in_fan_outs(2_000),
    "a cycle": {f"n{i}": {**STEP, "next": f"n{(i + 1) % NODES}"} for i in range(NODES)},
    "cycles": {f"n{i}": {**STEP, "next": [{"to": [f"n{(i + 1) % NODES}", f"n{i * 7 % NODES}"]}]} for i in range(NODES)},
    "nodes that are not there": {f"n{i}": {**STEP, "next": f"m{i}"} for i in range(NODES)},
    "fields that are not there": {f"n{i}": {**STEP, "nxt": "n0", f"f{i}": 1} for i in range(NODES)},
    "conditions that do not parse": {
        f"n{i}": {**STEP, "next": [{"to": "n0", "when": f"1 +* {i}"}]} for i in range(NODES)
    },
    "the same way many times": {"a": {**STEP, "next": [{"to": ["b"] * 5000}]}, "b": STEP},
    "too many nodes": {f"n{i}": STEP for i in range(30_000)},
}


@pytest.mark.parametrize("name", first(1, COMPILED))
def test_a_twisted_document_is_compiled_and_checked_without_much_work(name: str) -> None:
    graphs: list[GraphModel] = []

    assert lines_of(lambda: graphs.append(load_graph({"nodes": COMPILED[name]}).graph)) < COMPILED_MAX
    assert lines_of(lambda: check_soundness(graphs[0], work_max=WORK_MAX)) < CHECKED_MAX


@pytest.mark.parametrize("name", first(1, REFUSED))
def test_a_hopeless_document_is_refused_without_much_work(name: str) -> None:
    def refused() -> None:
        with pytest.raises(BadGraph):
            load_graph({"nodes": REFUSED[name]})

    assert lines_of(refused) < COMPILED_MAX


def test_how_deep_is_too_deep_is_said() -> None:
    load_graph({"nodes": fan_outs_in_fan_outs(100)})

    with pytest.raises(BadGraph, match="more than 100 loops and fan-outs are nested"):
        load_graph({"nodes": fan_outs_in_fan_outs(101)})


LONG = "x" * 3_000
LONG_NAMES: list[dict[str, Any]] = [
    {"name": f"{LONG}!", "nodes": {"a": {"pass": True}}},
    {"nodes": {f"{LONG}!": {"pass": True}}},
    {"nodes": {LONG: {"step": "s", "next": "b"}}},
    {"nodes": [{"id": LONG, "pass": True}] * 2},
    {LONG: 1, "nodes": {"a": {"pass": True}}},
    {"limits": {f"{LONG} {LONG}": 1}, "nodes": {"a": {"pass": True}}},
    {"output": {LONG: f"${{{LONG}}}"}, "nodes": {"a": {"pass": True}}},
    {"nodes": {"a": {"pass": True, "save": {LONG: "${output}"}}}},
    {"nodes": {"a": {"step": "s", "with": {"n": f"${{nodes.{LONG}.output}}"}}}},
    {"nodes": {"a": {"type": LONG, "config": {}}}},
]


@pytest.mark.parametrize("document", LONG_NAMES, ids=range(len(LONG_NAMES)))
def test_a_long_name_is_cut_where_it_is_told(document: dict[str, Any]) -> None:
    with pytest.raises(BadGraph) as refused:
        load_graph(document)

    assert len(str(refused.value)) < 2_000
    assert "…" in str(refused.value)


def test_a_long_name_of_a_step_is_cut_where_it_is_told() -> None:
    with pytest.raises(BadStep) as refused:
        load_steps({"weft": "steps/1", "steps": {LONG: {"step": "s", LONG: 1}}}, GOAL_LANGUAGES)

    assert len(str(refused.value)) < 2_000
