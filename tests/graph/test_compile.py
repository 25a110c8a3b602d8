"""What the compiler writes down: edges in order, tiers, entries, frames, loops and exits, scopes, a name by content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.graph.documents import Document, compiled, edge, nodes, refused
from weft.core.graph.derived_names import RUN_SCOPE, scope_name
from weft.core.graph.model import START, FanInNeed, Target, content_hash, decode, encode
from weft.graphs.load import load_graph

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "golden" / "graphs").glob("*.json"))
PROGRAMS = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_golden_document_compiles_or_is_refused_for_its_reason(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text("utf-8"))
    wanted = case["expect"].get("refused")
    if wanted is not None:
        assert [finding.code for finding in refused(case["document"])] == [f"graph.{wanted}"]
    else:
        loaded = load_graph(case["document"])
        assert loaded.warnings == []
        assert loaded.source == case["document"]


def test_there_are_thirty_golden_cases_and_five_programs() -> None:
    assert len(CASES) == 30
    assert len(PROGRAMS) == 5


@pytest.mark.parametrize("path", [*CASES, *PROGRAMS], ids=lambda path: path.stem)
def test_a_compiled_graph_comes_back_from_its_json(path: Path) -> None:
    source: Any = path if path.suffix == ".yaml" else json.loads(path.read_text("utf-8"))["document"]
    if "refuse" in path.stem:
        return
    graph = load_graph(source).graph
    assert decode(encode(graph)) == graph
    assert content_hash(decode(encode(graph))) == content_hash(graph)


def defaults_written(value: Any, written: Any) -> list[str]:
    """Fields that have their default and stand in the JSON all the same."""
    if isinstance(value, list):
        return [name for pair in zip(value, written, strict=True) for name in defaults_written(*pair)]
    if isinstance(value, dict):
        return [name for key in value for name in defaults_written(value[key], written[key])]
    if not isinstance(value, msgspec.Struct):
        return []
    found = []
    for field in msgspec.structs.fields(value):
        part = getattr(value, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if field.name in written:
            found += [field.name] if part == default else defaults_written(part, written[field.name])
    return found


@pytest.mark.parametrize("path", [*CASES, *PROGRAMS], ids=lambda path: path.stem)
def test_equal_graphs_have_equal_bytes_because_defaults_are_left_out(path: Path) -> None:
    source: Any = path if path.suffix == ".yaml" else json.loads(path.read_text("utf-8"))["document"]
    if "refuse" in path.stem:
        return
    graph = load_graph(source).graph
    assert defaults_written(graph, json.loads(encode(graph))) == []


def test_the_hash_follows_the_content_and_nothing_else() -> None:
    one = load_graph(nodes(a={"next": "b"}, b={}))
    same = load_graph(nodes(a={"next": [{"to": ["b"]}]}, b={"description": "said, not done"}))
    other = load_graph(nodes(a={"next": "b"}, b={"timeout": "1s"}))

    assert one.hash == same.hash
    assert one.hash != other.hash
    assert len(one.hash) == 64


def test_start_has_an_edge_to_each_entry_and_edges_are_ordered_node_by_node() -> None:
    graph = compiled(nodes(a={"next": "c"}, b={"next": "c"}, c={"join": "edges"}))

    assert [(e.ordinal, e.source, e.to) for e in graph.edges.values()] == [
        (0, START, "a"),
        (1, START, "b"),
        (2, "a", "c"),
        (3, "b", "c"),
    ]
    assert graph.start == [">a", ">b"]
    assert graph.nodes["c"].incoming == ["a>c", "b>c"]
    assert graph.terminals == ["c"]


def test_a_node_that_only_a_loop_goes_back_to_is_an_entry() -> None:
    graph = compiled(nodes(a={"next": "b"}, b={"repeat": {"while": "output.x", "at_most": 2, "back_to": "a"}}))

    assert [graph.edges[name].to for name in graph.start] == ["a"]


def test_targets_of_a_replaced_break_path_are_no_entries_but_never_run() -> None:
    document = nodes(
        a={
            "loop": {"condition": "output.x", "max_iterations": 2, "break_path": ["gone"], "timeout_path": ["late"]},
            "branch": {"rules": [{"condition": "output.y", "next_nodes": ["b"]}], "default": ["c"]},
        },
        b={},
        c={},
        gone={"next": "z"},
        late={},
        z={"join": "edges"},
    )
    loaded = load_graph({**document, "nodes": {**document["nodes"], "c": {"pass": True, "next": "z"}}})

    assert [loaded.graph.edges[name].to for name in loaded.graph.start] == ["a"]
    assert [finding.code for finding in loaded.warnings] == ["graph.unreachable"]
    assert [loaded.graph.edges[name].source for name in loaded.graph.nodes["z"].incoming] == ["c"]


def test_priorities_become_tiers_from_zero_and_keep_the_order_of_the_document() -> None:
    graph = compiled(
        {
            **nodes(a={}, b={}, c={}, d={}),
            "transitions": [
                {"from": "a", "to": "d", "priority": 7},
                {"from": "a", "to": "b", "priority": -1, "condition": "output.n > 1"},
                {"from": "a", "to": "c", "priority": -1, "condition": "output.n > 2"},
            ],
        }
    )

    d, b, c = (edge(graph, "a", to) for to in "dbc")
    assert d.ordinal < b.ordinal < c.ordinal
    assert (d.tier, b.tier, c.tier) == (1, 0, 0)
    assert graph.nodes["a"].tiers == [[b.name, c.name], [d.name]]


def test_a_catch_comes_after_everything_and_is_asked_alone_when_the_node_fails() -> None:
    graph = compiled(
        nodes(
            a={
                "next": [{"when": "output.ok", "to": "b"}, {"to": "c"}],
                "catch": [{"error": "Declined", "to": "d"}, "e"],
            },
            b={},
            c={},
            d={},
            e={},
        )
    )
    d, e = edge(graph, "a", "d"), edge(graph, "a", "e")

    assert (d.errors, e.errors) == (["Declined"], [])
    assert d.mentions_error
    assert graph.nodes["a"].error_tiers == [[d.name], [e.name]]
    assert [len(tier) for tier in graph.nodes["a"].tiers] == [1, 1, 1, 1]
    assert not graph.nodes["a"].terminal


@pytest.mark.parametrize("condition", ["state._last_error != null", "error != null", {"not": "error == null"}])
def test_a_condition_on_the_error_mentions_it(condition: Any) -> None:
    graph = compiled(nodes(a={"next": [{"when": condition, "to": "b"}]}, b={}))

    assert edge(graph, "a", "b").mentions_error
    assert graph.nodes["a"].terminal


def test_a_fan_in_closes_the_nearest_fan_out() -> None:
    graph = compiled(
        nodes(
            a={"next": [{"to": "b", "for_each": "${input.xs}"}]},
            b={"next": [{"to": ["c", "d"]}]},
            c={"next": "inner"},
            d={"next": "inner"},
            inner={"join": "all", "next": "outer"},
            outer={"join": {"at_least": "50%"}, "late": "merge"},
        )
    )

    inner, outer = graph.nodes["inner"].fan_in, graph.nodes["outer"].fan_in
    assert inner is not None
    assert outer is not None
    assert (inner.opener, outer.opener) == ("b", "a")
    assert (graph.nodes["a"].closed_by, graph.nodes["b"].closed_by) == ("outer", "inner")
    assert outer.need == FanInNeed("percent", percent=50)
    assert outer.early == "late_merge"
    assert graph.nodes["b"].opening == ["b>c", "b>d"]


def test_of_names_a_fan_out_farther_away() -> None:
    graph = compiled(
        nodes(
            a={"next": [{"to": "b", "copies": 2}]},
            b={"next": [{"to": ["c", "d"]}]},
            c={"next": "j"},
            d={"next": "j"},
            j={"join": "all", "of": "a"},
        )
    )

    join = graph.nodes["j"].fan_in
    assert join is not None
    assert join.opener == "a"
    assert not edge(graph, "b", "c").opens


def test_an_edge_join_consumes_the_split_in_front_of_it() -> None:
    graph = compiled(
        nodes(
            a={"next": [{"to": "b", "copies": 2}]},
            b={"next": [{"to": ["p", "q"]}]},
            p={"next": "m"},
            q={"next": "m"},
            m={"join": "edges", "next": "j"},
            j={"join": "all"},
        )
    )

    join = graph.nodes["j"].fan_in
    assert join is not None
    assert join.opener == "a"


def test_an_edge_join_of_one_edge_consumes_nothing() -> None:
    graph = compiled(nodes(a={"next": [{"to": "b", "copies": 2}]}, b={"join": "edges", "next": "j"}, j={"join": "all"}))

    join = graph.nodes["j"].fan_in
    assert join is not None
    assert join.opener == "a"


def test_a_certain_fan_out_is_preferred_to_a_nearer_possible_one() -> None:
    choice = [
        {"from": "b", "to": "c", "condition": "output.x"},
        {"from": "b", "to": "d", "condition": "output.y"},
    ]
    tail = [{"from": "c", "to": "j"}, {"from": "d", "to": "j"}]
    certain = compiled(
        {
            **nodes(a={}, b={}, c={}, d={}, j={"fan_in": "all"}),
            "transitions": [{"from": "a", "to": "b", "spawn": 2}, *choice, *tail],
        }
    )
    possible = compiled(
        {
            **nodes(a={}, b={}, c={}, d={}, j={"fan_in": "all"}),
            "transitions": [{"from": "a", "to": "b"}, *choice, *tail],
        }
    )

    assert certain.nodes["a"].closed_by == "j"
    assert possible.nodes["b"].closed_by == "j"


def test_start_opens_a_frame_when_a_fan_in_closes_it() -> None:
    graph = compiled(nodes(a={"next": "j"}, b={"next": "j"}, j={"join": "all"}))

    assert graph.start_closed_by == "j"
    assert all(graph.edges[name].opens for name in graph.start)


def test_loops_nest_and_edges_name_the_ones_they_leave() -> None:
    again = {"while": "output.more", "at_most": 3}
    graph = compiled(
        nodes(
            h={"next": "f"},
            f={"repeat": {**again, "exhausted": "t"}, "next": "p"},
            p={"repeat": {**again, "back_to": "h"}, "next": "x"},
            x={},
            t={},
        )
    )
    outer, inner = graph.nodes["h"].heads[0], graph.nodes["f"].heads[0]

    assert graph.loops[inner].parent == outer
    assert (graph.loops[outer].header, graph.loops[outer].latches) == ("h", ["p"])
    assert edge(graph, "f", "p").exits == [inner]
    assert edge(graph, "f", "t", "timeout").exits == [inner, outer]
    assert edge(graph, "p", "h", "back").loop == outer
    assert graph.loops[outer].exits == ["f>t@timeout", "p>x"]
    repeat = graph.nodes["f"].repeat
    assert repeat is not None
    assert (repeat.loop, repeat.at_most, repeat.fails) == (inner, 3, False)
    assert repeat.exhausted == ["f>t@timeout"]


def test_loops_of_one_header_are_nested_or_one() -> None:
    again = {"while": "output.more", "at_most": 3, "back_to": "h"}
    nested = compiled(nodes(h={"next": "a"}, a={"repeat": again, "next": "b"}, b={"repeat": again}))
    crossed = compiled(nodes(h={"next": [{"to": ["a", "b"]}]}, a={"repeat": again}, b={"repeat": again}))

    shared = compiled(
        nodes(
            h={"next": "a"},
            a={"repeat": again, "next": "x"},
            x={"repeat": again, "next": "b"},
            b={"repeat": {**again, "back_to": "a"}},
        )
    )

    assert [loop.latches for loop in nested.loops.values()] == [["b"], ["a"]]
    assert [(loop.header, loop.latches) for loop in shared.loops.values()] == [("h", ["a", "x"]), ("a", ["b"])]
    assert nested.nodes["h"].heads == ["h", "h#2"]
    assert [loop.latches for loop in crossed.loops.values()] == [["a", "b"]]


def test_a_loop_without_exhausted_fails_at_its_limit_and_with_none_it_ends() -> None:
    fails = compiled(nodes(a={"repeat": {"until": "output.ok", "at_most": 2}})).nodes["a"].repeat
    ends = compiled(nodes(a={"repeat": {"until": "output.ok", "at_most": 2, "exhausted": []}})).nodes["a"].repeat

    assert fails is not None
    assert ends is not None
    assert (fails.fails, fails.until) == (True, True)
    assert (ends.fails, ends.exhausted) == (False, [])


def test_scopes_say_in_which_branch_and_loop_a_node_works() -> None:
    graph = compiled(
        nodes(
            a={"next": [{"to": "b", "for_each": "${input.xs}"}]},
            b={"repeat": {"while": "output.x", "at_most": 2}, "next": "j", "catch": "h"},
            j={"join": "all", "catch": "h"},
            h={},
        )
    )
    branch = scope_name(RUN_SCOPE, "a>b")

    assert graph.nodes["b"].scopes == [scope_name(branch, "b")]
    assert graph.nodes["j"].scopes == [RUN_SCOPE]
    assert graph.nodes["h"].scopes == [branch, RUN_SCOPE]
    assert {(wait.scope, tuple(wait.edges)) for wait in graph.nodes["h"].waits} == {
        (branch, ("b>h",)),
        (RUN_SCOPE, ("j>h",)),
    }


def test_only_nodes_that_an_expression_names_are_remembered() -> None:
    document = nodes(a={"next": "b"}, b={"next": "c"}, c={"with": {"x": "${nodes.a.output.v + ctx.b.output.v}"}})
    graph = compiled(document)
    whole = compiled(nodes(a={"next": "b"}, b={"with": {"x": "${nodes}"}}))

    assert [name for name, node in graph.nodes.items() if node.remembered] == ["a", "b"]
    given = graph.nodes["c"].input
    assert given is not None
    assert (given.names, given.nodes) == (["ctx", "nodes"], ["a", "b"])
    assert all(node.remembered for node in whole.nodes.values())


def test_bare_targets_are_the_branch_inside_a_fan_out_and_the_state_outside() -> None:
    graph = compiled(
        {
            "nodes": [
                {"id": "a", "type": "task", "output_mapping": {"x": "output.v"}},
                {"id": "b", "type": "task", "output_mapping": {"x": "output.v"}},
                {"id": "j", "fan_in": "all", "merge": {"target": "all", "strategy": "append"}},
            ],
            "transitions": [{"from": "a", "to": "b", "spawn": 2}, {"from": "b", "to": "j"}],
        }
    )
    join = graph.nodes["j"].fan_in

    assert graph.nodes["a"].save[0].to == Target("state", ["x"])
    assert graph.nodes["b"].save[0].to == Target("here", ["x"])
    assert join is not None
    assert join.merge is not None
    assert join.merge.into == Target("state", ["all"])


def test_a_share_of_the_branches_is_rounded_up_and_at_least_one() -> None:
    assert [FanInNeed("percent", percent=90).of(total) for total in (0, 1, 10, 11, 20)] == [1, 1, 9, 10, 18]
    assert [FanInNeed("percent", percent=33.4).of(total) for total in (1, 3, 1000)] == [1, 2, 334]
    assert [FanInNeed().of(3), FanInNeed("count", 2).of(3)] == [3, 2]


def test_ten_thousand_nodes_compile() -> None:
    blocks: dict[str, Document] = {}
    for i in range(2500):
        blocks[f"a{i}"] = {"next": [{"to": [f"b{i}", f"c{i}"]}]}
        blocks[f"b{i}"] = blocks[f"c{i}"] = {"next": f"j{i}"}
        blocks[f"j{i}"] = {"join": "all", "next": f"a{i + 1}"} if i < 2499 else {"join": "all"}
    graph = compiled(nodes(**blocks))

    assert len(graph.nodes) == 10_000
    assert all(graph.nodes[f"a{i}"].closed_by == f"j{i}" for i in range(2500))
