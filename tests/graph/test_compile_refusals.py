"""Every way in which a graph can be unsound has a code, and the smallest document that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.graph.documents import Document, codes, is_accepted, nodes, refused
from weft.graphs.load import load_graph

AGAIN: Document = {"while": "output.more", "at_most": 3}
EACH: Document = {"for_each": "${input.xs}"}


def test_a_cycle_that_no_loop_closes() -> None:
    document = nodes(a={"next": "b"}, b={"next": "c"}, c={"next": "b"})

    (finding,) = refused(document)

    assert finding.code == "graph.cycle_without_limit"
    assert finding.path == "nodes.c.next"
    assert finding.message == "b -> c -> b is a cycle without a limit."
    assert "repeat on c" in finding.suggestion


@pytest.mark.parametrize(
    "document",
    [nodes(a={"next": "a"}), nodes(a={"next": "b"}, b={"next": "a"}), nodes(a={"next": "b"}, b={"next": "b"})],
)
def test_a_cycle_is_found_also_where_nothing_leads_into_it(document: Document) -> None:
    assert codes(document) == ["cycle_without_limit"]


def test_a_loop_that_is_entered_beside_its_header() -> None:
    document = nodes(s={"next": [{"to": ["h", "n"]}]}, h={"next": "n"}, n={"repeat": {**AGAIN, "back_to": "h"}})

    assert codes(document) == ["irreducible_loop"]


def test_a_loop_back_to_a_node_beside_it() -> None:
    document = nodes(s={"next": [{"to": ["a", "b"]}]}, a={}, b={"repeat": {**AGAIN, "back_to": "a"}})

    assert codes(document) == ["irreducible_loop"]


@pytest.mark.parametrize(
    "document",
    [
        nodes(a={"next": "j"}, j={"join": "all"}),
        nodes(
            a={"next": [{"when": "output.x", "to": "b"}, {"to": "c"}]},
            b={"next": "j"},
            c={"next": "j"},
            j={"join": "all"},
        ),
        nodes(
            a={"next": [{"to": ["b", "c"]}]},
            b={"next": "m"},
            c={"next": "m"},
            m={"join": "edges", "next": "j"},
            j={"join": "all"},
        ),
        nodes(a={"next": [{"to": "b", **EACH}]}, b={"next": "j"}, j={"join": "all", "next": "k"}, k={"join": "all"}),
    ],
)
def test_a_fan_in_with_nothing_to_close(document: Document) -> None:
    assert codes(document) == ["fan_in_without_fan_out"]


def test_an_unconditional_edge_beside_an_error_edge_is_no_fan_out() -> None:
    document = {
        **nodes(a={}, b={}, h={}, j={"fan_in": "all"}),
        "transitions": [
            {"from": "a", "to": "b"},
            {"from": "a", "to": "h", "condition": "error != null"},
            {"from": "b", "to": "j"},
            {"from": "h", "to": "j"},
        ],
    }

    assert codes(document) == ["fan_in_without_fan_out"]


@pytest.mark.parametrize(
    ("of", "code"),
    [("b", "fan_in_without_fan_out"), ("side", "fan_in_without_fan_out"), ("nobody", "unknown_node")],
)
def test_a_fan_in_that_names_what_it_cannot_close(of: str, code: str) -> None:
    document = nodes(
        a={"next": [{"to": ["b", "side"]}]},
        b={"next": "j"},
        side={"next": [{"to": ["c", "j"]}]},
        c={},
        j={"join": "all", "of": of},
    )

    assert codes(document) == [code]


@pytest.mark.parametrize(("of", "code"), [({"of": "a"}, "frame_mismatch"), ({}, "fan_in_without_fan_out")])
def test_two_fan_ins_for_one_frame(of: Document, code: str) -> None:
    document = nodes(
        a={"next": [{"to": ["b", "c"]}]},
        b={"next": "j"},
        c={"next": "k"},
        j={"join": "all", **of},
        k={"join": "all", **of},
    )

    assert codes(document) == [code]


def test_a_fan_in_that_a_token_reaches_from_an_inner_frame() -> None:
    document = nodes(
        a={"next": [{"to": "b", **EACH}]},
        b={"next": [{"to": "c", **EACH}]},
        c={"next": "j"},
        j={"join": "all", "of": "a"},
    )

    (finding,) = refused(document)

    assert finding.code == "graph.frame_mismatch"
    assert finding.path == "nodes.j.join"
    assert "inside the branch b -> c" in finding.message


def test_a_fan_in_inside_a_loop_that_its_fan_out_is_not_in() -> None:
    document = nodes(
        a={"next": [{"to": "h", **EACH}]}, h={"next": "j"}, j={"join": "all", "repeat": {**AGAIN, "back_to": "h"}}
    )

    assert "frame_mismatch" in codes(document)


def test_a_loop_that_goes_back_out_of_a_frame() -> None:
    document = nodes(
        h={"next": [{"to": "b", **EACH}]},
        b={"repeat": {**AGAIN, "back_to": "h"}, "next": "j"},
        j={"join": "all"},
    )

    (finding,) = refused(document)

    assert finding.code == "graph.loop_leaves_frame"
    assert "the branch h -> b" in finding.message


def test_a_loop_back_into_a_fan_out_that_never_closes() -> None:
    document = nodes(h={"next": [{"to": "b", **EACH}]}, b={"repeat": {**AGAIN, "back_to": "h"}})

    assert codes(document) == ["loop_leaves_frame"]


@pytest.mark.parametrize(
    "document",
    [
        # The edges lie in different branches.
        nodes(
            a={"next": [{"to": ["b", "c"]}]},
            b={"next": "m"},
            c={"next": "m"},
            m={"join": "edges", "next": "j"},
            j={"join": "all", "of": "a"},
        ),
        # One edge comes from inside a frame, the other from outside.
        nodes(
            s={"next": [{"to": ["a", "m"]}]}, a={"next": [{"to": "b", **EACH}]}, b={"next": "m"}, m={"join": "edges"}
        ),
    ],
)
def test_an_edge_join_of_edges_that_can_never_meet(document: Document) -> None:
    assert codes(document) == ["join_across_branches"]


def test_a_frame_of_which_one_half_stays_in_the_loop() -> None:
    document = nodes(
        h={"next": "a"},
        a={"next": [{"to": ["b", "c"]}]},
        b={"repeat": {**AGAIN, "back_to": "h"}, "next": "j"},
        c={"next": "j"},
        j={"join": "all"},
    )

    assert "frame_half_in_loop" in codes(document)


def test_branches_that_multiply_without_end() -> None:
    ways: list[Any] = [{"when": "input.a", "to": "x", **EACH}, {"to": "x", **EACH}]
    chain = {f"n{i}": {"next": [{**way, "to": f"n{i + 1}"} for way in ways]} for i in range(20)}

    assert codes(nodes(**chain, n20={})) == ["too_tangled"]


def test_loops_inside_loops_inside_loops_without_end() -> None:
    chain = {
        f"n{i}": {"repeat": {**AGAIN, "back_to": "n0", "exhausted": "out"}, "next": f"n{i + 1}"} for i in range(500)
    }

    assert codes(nodes(**chain, n500={}, out={})) == ["too_tangled"]


@pytest.mark.parametrize("many", [4, 5])
def test_more_arrivals_than_branches(many: int) -> None:
    document = nodes(
        a={"next": [{"to": ["b", "c"]}]},
        b={"next": "j"},
        c={"next": "j"},
        j={"join": {"at_least": many}},
    )

    (finding,) = refused(document)

    assert finding.code == "graph.m_above_n"
    assert finding.message == f"j needs {many} branches, but a opens at most 2."


def test_only_edges_that_can_fire_together_count_as_branches() -> None:
    choice = [{"when": "output.x", "to": ["b", "c"]}, {"to": ["d", "e"]}]
    arms = {name: {"next": "j"} for name in "bcde"}
    too_many = nodes(a={"next": choice}, **arms, j={"join": {"at_least": 3}})

    assert codes(too_many) == ["m_above_n"]
    assert is_accepted(nodes(a={"next": choice, "fan_out": "all"}, **arms, j={"join": {"at_least": 3}}))
    assert is_accepted(nodes(a={"next": [{"to": "b", "copies": 3}]}, b={"next": "j"}, j={"join": {"at_least": 3}}))
    assert is_accepted(nodes(a={"next": [{"to": "b", **EACH}]}, b={"next": "j"}, j={"join": {"at_least": 99}}))


def test_state_that_every_branch_of_a_foreach_would_write() -> None:
    document = nodes(
        a={"next": [{"to": "b", **EACH}]}, b={"save": {"state.x": "${output}"}, "next": "j"}, j={"join": "all"}
    )

    (finding,) = refused(document)

    assert finding.code == "graph.write_conflict"
    assert finding.path == "nodes.b.save.state.x"
    assert "branch.x" in finding.suggestion


@pytest.mark.parametrize(("one", "other"), [("state.x", "state.x"), ("state.x", "state.x.y"), ("state.x.y", "state.x")])
def test_state_that_two_branches_of_a_split_would_write(one: str, other: str) -> None:
    document = nodes(
        a={"next": [{"to": ["b", "c"]}]},
        b={"save": {one: "${output}"}, "next": "j"},
        c={"save": {other: "${output}"}, "next": "j"},
        j={"join": "all"},
    )

    assert codes(document) == ["write_conflict"]


def test_branches_may_write_different_state_and_so_may_arms_of_a_choice() -> None:
    split = nodes(
        a={"next": [{"to": ["b", "c"]}]},
        b={"save": {"state.x.p": "${output}"}, "next": "j"},
        c={"save": {"state.x.q": "${output}"}, "next": "j"},
        j={"join": "all"},
    )
    choice = nodes(
        a={"next": [{"when": "output.x", "to": ["b", "d"]}, {"to": ["c", "d"]}]},
        b={"save": {"state.x": "${output}"}, "next": "j"},
        c={"save": {"state.x": "${output}"}, "next": "j"},
        d={"next": "j"},
        j={"join": "all"},
    )

    assert is_accepted(split)
    assert is_accepted(choice)


def test_a_split_that_nothing_closes_writes_where_its_parent_wrote() -> None:
    document = nodes(
        a={"next": [{"to": ["b", "c"]}]},
        b={"save": {"state.x": "${output}"}},
        c={"save": {"state.x": "${output}"}},
    )

    assert is_accepted(document)


def test_fields_that_the_state_does_not_have() -> None:
    document = {
        "state": {"total": "number", "shop": {"name": "string"}},
        **nodes(
            a={"save": {"state.totl": "${output}", "state.shop.name": "x"}, "next": [{"to": ["b", "c"]}]},
            b={"next": "j"},
            c={"next": "j"},
            j={"join": "all", "merge": {"how": "append", "into": "state.parts"}, "save": {"state.shop.nme": "x"}},
        ),
    }

    found = refused(document)

    assert [(f.code, f.path) for f in found] == [
        ("graph.unknown_field", "nodes.a.save.state.totl"),
        ("graph.unknown_field", "nodes.j.save.state.shop.nme"),
        ("graph.unknown_field", "nodes.j.merge"),
    ]
    assert found[0].suggestion == 'Did you mean "total"?'


def test_a_merge_inside_a_branch_cannot_write_the_state() -> None:
    document = nodes(
        a={"next": [{"to": "b", **EACH}]},
        b={"next": [{"to": "c", **EACH}]},
        c={"next": "j"},
        j={"join": "all", "merge": {"how": "append", "into": "state.x"}, "next": "k"},
        k={"join": "all"},
    )

    (finding,) = refused(document)

    assert finding.code == "graph.merge_target"
    assert "branch.x" in finding.suggestion


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("outptu.x > 1", 'nothing is called "outptu" here. Did you mean "output"?'),
        ("page > 1", '"page" is bound only in the branches of a -> b.'),
    ],
)
def test_names_that_nothing_binds(text: str, said: str) -> None:
    document = nodes(
        a={"next": [{"to": "b", "for_each": "${input.xs}", "as": "page"}]},
        b={"with": {"p": "${page}"}, "next": "j"},
        j={"join": "all", "next": [{"when": text, "to": "z"}]},
        z={},
    )

    (finding,) = refused(document)

    assert finding.code == "graph.unknown_name"
    assert f"{finding.message} {finding.suggestion}".strip() == said


def test_nodes_that_an_expression_names_must_exist() -> None:
    document = nodes(score={"next": "b"}, b={"with": {"x": "${nodes.scor.output}"}})

    (finding,) = refused(document)

    assert (finding.code, finding.path) == ("graph.unknown_node", "nodes.b.with.x")
    assert finding.suggestion == 'Did you mean "score"?'


def test_a_start_that_other_nodes_lead_to() -> None:
    assert codes({"start": "b", **nodes(a={"next": "b"}, b={})}) == ["bad_start"]


def test_a_fan_out_that_nothing_closes_is_only_warned_of() -> None:
    loaded = load_graph(nodes(a={"next": [{"to": "b", **EACH}]}, b={}))

    assert [str(finding) for finding in loaded.warnings] == [
        "nodes.a.next[0].to: no join closes the fan-out of a: everything that its branches write is lost."
    ]


def test_one_mistake_does_not_hide_the_others() -> None:
    document = {
        "state": {"x": "number"},
        "colour": "blue",
        **nodes(
            a={"next": [{"when": "output.x >", "to": ["b", "c"]}, {"to": "nuture"}], "stepp": "s"},
            b={"next": "j"},
            c={"next": "j", "type": "rocket"},
            j={"join": {"at_least": 5}, "merge": {"how": "append", "into": "state.y"}, "next": "loop1"},
            loop1={"next": "loop2"},
            loop2={"next": [{"when": {"jsonpath": "$.x", "is": "bigger", "value": 1}, "to": "loop1"}]},
            nurture={},
        ),
    }

    assert sorted(codes(document)) == sorted(
        [
            "unknown_field",
            "unknown_field",
            "unknown_type",
            "expression.syntax",
            "condition.operator",
            "unknown_node",
            "cycle_without_limit",
            "m_above_n",
            "unknown_field",
        ]
    )
