"""Rules of docs/internals/graph.md that documents rarely touch: splits, single edges, endless loops, skips."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.graph.table import Table
from weft.errors import BadGraph
from weft.graphs.check import check_document
from weft.graphs.load import load_graph

Nodes = dict[str, Any]


def played(document: dict[str, Any], outputs: dict[str, list[Any]] | None = None, given: Any = None) -> Table:
    table = Table(load_graph(document).graph, {} if given is None else given)
    steps = {node: [{"output": output} for output in calls] for node, calls in (outputs or {}).items()}
    table.play({"steps": steps}, seed=0)
    return table


def executed(table: Table) -> dict[str, int]:
    assert table.state.status == "completed", table.state.failure
    return dict(table.state.executed)


# --- which node is a fan-out -------------------------------------------------------------------------------------


def always_b_and_perhaps_c() -> dict[str, Any]:
    return {
        "nodes": {
            "a": {"step": "s"},
            "b": {"step": "s"},
            "c": {"step": "s"},
            "j": {"join": "all", "merge": {"how": "append", "into": "state.all"}},
        },
        "transitions": [
            {"from": "a", "to": "b"},
            {"from": "a", "to": "c", "when": "output.more"},
            {"from": "b", "to": "j"},
            {"from": "c", "to": "j"},
        ],
    }


@pytest.mark.parametrize(("more", "merged"), [(True, ["b", "c"]), (False, ["b"])])
def test_always_one_and_another_if_is_closed_by_a_join(more: bool, merged: list[str]) -> None:
    document = always_b_and_perhaps_c()
    assert check_document(document).outcome == "sound"
    table = played(document, {"a": [{"more": more}], "b": ["b"], "c": ["c"]})
    assert executed(table)["j"] == 1
    assert table.state.data["all"] == merged


def test_first_match_is_no_fan_out() -> None:
    document = always_b_and_perhaps_c()
    document["transitions"][0]["when"] = "output.less"
    load_graph(document)
    document["nodes"]["a"]["fan_out"] = "first_match"
    with pytest.raises(BadGraph) as refused:
        load_graph(document)
    (found,) = refused.value.context["findings"]  # type: ignore[misc]
    assert found.code == "graph.fan_in_without_fan_out"


def test_a_join_behind_a_first_match_closes_the_fan_out_around_it() -> None:
    document = {
        "nodes": {
            "o": {"step": "s", "next": [{"to": "a", "for_each": "${input.list}"}]},
            "a": {"step": "s", "fan_out": "first_match", "next": [{"when": "output.x", "to": "b"}, {"to": "c"}]},
            "b": {"step": "s", "next": "j"},
            "c": {"step": "s", "next": "j"},
            "j": {"join": "all"},
        }
    }
    graph = load_graph(document).graph
    assert graph.nodes["j"].fan_in is not None
    assert graph.nodes["j"].fan_in.opener == "o"


def test_a_way_and_its_catch_in_one_tier_are_no_fan_out() -> None:
    document = {
        "nodes": {
            "o": {"step": "s", "next": [{"to": "a", "for_each": "${input.list}"}]},
            "a": {"step": "s"},
            "b": {"step": "s"},
            "h": {"step": "s"},
            "j": {"join": "all"},
        },
        "transitions": [
            {"from": "a", "to": "b"},
            {"from": "a", "to": "h", "when": "error != null"},
            {"from": "b", "to": "j"},
            {"from": "h", "to": "j"},
        ],
    }
    graph = load_graph(document).graph
    assert graph.nodes["j"].fan_in is not None
    assert graph.nodes["j"].fan_in.opener == "o"


# --- one edge is plain -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [{"dependencies": ["a"]}, {"wait_for_all": True}, {"join": "edges"}])
def test_a_node_with_one_edge_is_given_what_comes_by_it(word: dict[str, Any]) -> None:
    document = {
        "nodes": {
            "a": {"step": "s", "dependents": ["b"]},
            "b": {"step": "s", "save": {"state.n": "${nodes.a.output.n}"}, **word},
        }
    }
    graph = load_graph(document).graph
    assert graph.nodes["b"].join == "plain"
    table = Table(graph, {})
    table.answer(next(iter(table.open)), {"a": {"*": {"output": {"n": 1}}}}, Counter())
    (effect,) = table.open.values()
    assert bytes(effect.input) == b'{"n":1}'


def test_two_dependencies_still_wait_for_both() -> None:
    document = {
        "nodes": {
            "a": {"step": "s"},
            "b": {"step": "s"},
            "c": {"step": "s", "dependencies": ["a", "b"]},
        }
    }
    assert load_graph(document).graph.nodes["c"].join == "edges"
    assert executed(played(document)) == {"a": 1, "b": 1, "c": 1}


# --- errors that are not there -----------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["state._last_error.code == 'boom'", "error.code == 'boom'"])
def test_an_edge_on_the_error_does_not_match_a_success(condition: str) -> None:
    document = {
        "nodes": {"a": {"step": "s"}, "b": {"step": "s"}, "h": {"step": "s"}},
        "transitions": [
            {"from": "a", "to": "h", "when": condition, "priority": 0},
            {"from": "a", "to": "b", "priority": 1},
        ],
    }
    assert executed(played(document, {"a": [{}]})) == {"a": 1, "b": 1}
    table = Table(load_graph(document).graph, {})
    table.play({"steps": {"a": [{"error": "boom"}]}}, seed=0)
    assert executed(table) == {"h": 1}


# --- loops -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", [{"repeat": {"at_most": 3}}, {"loop": {"max_iterations": 3}}])
def test_a_loop_without_a_condition_runs_to_its_limit_and_goes_on(loop: dict[str, Any]) -> None:
    document = {"nodes": {"a": {"step": "s", "dependents": ["b"], **loop}, "b": {"step": "s"}}}
    assert check_document(document).outcome == "sound"
    assert executed(played(document)) == {"a": 3, "b": 1}


def test_its_way_for_the_limit_is_never_taken_and_check_says_so() -> None:
    document = {
        "nodes": {
            "a": {"step": "s", "repeat": {"at_most": 2, "exhausted": "x"}, "next": "b"},
            "b": {"step": "s"},
            "x": {"step": "s"},
        }
    }
    assert executed(played(document)) == {"a": 2, "b": 1}
    found = {finding.code: finding for finding in check_document(document).findings}
    assert "nodes.a.repeat.exhausted" in found["graph.never_taken"].path


def fan_out_behind_a_loop(**loop: Any) -> dict[str, Any]:
    return {
        "nodes": {
            "a": {"step": "s", "repeat": {"while": "output.again", "at_most": 2, **loop}, "next": [{"to": ["b", "c"]}]},
            "b": {"step": "s", "next": "j"},
            "c": {"step": "s", "next": "j"},
            "j": {"join": "all", "next": "z"},
            "x": {"step": "s", "next": "z"},
            "z": {"step": "s", "join": "edges"},
        }
    }


@pytest.mark.parametrize(
    ("again", "ran"),
    [
        ([True, True], {"a": 2, "x": 1, "z": 1}),
        ([True, False], {"a": 2, "b": 1, "c": 1, "j": 1, "z": 1}),
        ([False], {"a": 1, "b": 1, "c": 1, "j": 1, "z": 1}),
    ],
)
def test_a_limit_skips_the_fan_out_that_the_normal_exit_would_open(again: list[bool], ran: dict[str, int]) -> None:
    document = fan_out_behind_a_loop(exhausted="x")
    assert check_document(document).outcome == "sound", check_document(document).findings
    assert executed(played(document, {"a": [{"again": one} for one in again]})) == ran


@pytest.mark.parametrize("again", [[True, True], [True, False], [False]])
def test_the_same_from_the_middle_of_a_longer_loop(again: list[bool]) -> None:
    """The opener is not the latch, and the loop lies inside another one."""
    document = {
        "nodes": {
            "outer": {"step": "s", "next": "head"},
            "head": {"step": "s", "next": "mid"},
            "mid": {
                "step": "s",
                "fan_out": "all",
                "on_no_match": "end",
                "next": [
                    {"when": "output.leave", "to": "b"},
                    {"when": "output.leave", "to": "c"},
                    {"when": "!output.leave", "to": "latch"},
                ],
            },
            "latch": {"step": "s", "repeat": {"while": "true", "at_most": 2, "back_to": "head", "exhausted": "x"}},
            "b": {"step": "s", "next": "j"},
            "c": {"step": "s", "next": "j"},
            "j": {"join": "all", "next": "z"},
            "x": {"step": "s", "next": "z"},
            "z": {"step": "s", "join": "edges", "repeat": {"at_most": 2, "back_to": "outer"}, "next": "end"},
            "end": {"step": "s"},
        }
    }
    left = {"mid": [{"leave": not one} for one in again] * 2}
    ran = executed(played(document, left))
    assert (ran["z"], ran["end"]) == (2, 1)
    assert ran.get("j", 0) + ran.get("x", 0) == 2
