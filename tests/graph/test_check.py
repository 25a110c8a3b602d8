"""What `check` says of graphs that can go wrong, and that it says nothing of those that cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.graph.documents import Document, compiled, nodes
from weft.core.graph.soundness import Flaw, Verdict, check_soundness
from weft.errors import BadGraph
from weft.graphs.load import load_graph

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "graphs").glob("*.json"))
CROWD = nodes(
    a={"next": [{"to": ["b", "c", "e"]}]},
    b={"next": "d"},
    c={"next": "d"},
    d={"next": "f"},
    e={"next": "f"},
    f={"join": "edges"},
)


def checked(document: Document, **options: Any) -> Verdict:
    return check_soundness(compiled(document), **options)


def only(document: Document, code: str) -> Flaw:
    """The one flaw of a kind."""
    found = [flaw for flaw in checked(document).flaws if flaw.code == code]
    assert len(found) == 1, checked(document).flaws
    return found[0]


def errors(verdict: Verdict) -> list[str]:
    return [flaw.code for flaw in verdict.flaws if flaw.severity == "error"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_golden_cases_are_as_sound_as_they_say(path: Path) -> None:
    case = json.loads(path.read_text())
    try:
        graph = load_graph(case["document"]).graph
    except BadGraph:
        assert "refused" in case["expect"]
        return
    verdict = check_soundness(graph)
    assert verdict.outcome == case["expect"].get("check", "sound")
    if case["expect"].get("error") == "deadlock":
        assert "deadlock" in errors(verdict)


# --- deadlocks ----------------------------------------------------------------------------------------------------


def test_a_deadlock_is_shown_by_the_moves_that_lead_to_it() -> None:
    flaw = only(CROWD, "deadlock")

    assert flaw.node == "f"
    assert "nothing will arrive from e" in flaw.message
    assert flaw.moves[0] == "a -> b, c, e"
    assert sorted(flaw.moves[1:]) == ["b -> d", "c -> d", "d -> f", "d -> f", "e -> f", "f ends"]


def test_of_several_ways_into_a_deadlock_the_shortest_is_shown() -> None:
    long_way = nodes(
        a={"next": [{"when": "output.far", "to": "b"}, {"to": "d"}]},
        b={"next": "c"},
        c={"next": "d"},
        d={"next": [{"to": ["e", "g", "h"]}]},
        e={"next": "m"},
        g={"next": "m"},
        m={"next": "j"},
        h={"next": "j"},
        j={"join": "edges"},
    )

    moves = only(long_way, "deadlock").moves

    assert moves[:2] == ["a -> d", "d -> e, g, h"]


def test_a_loop_that_one_token_leaves_while_another_stays_is_a_deadlock() -> None:
    document = nodes(
        head={"next": [{"to": ["latch", "left"]}]},
        latch={
            "repeat": {"while": "output.again", "at_most": 9, "back_to": "head", "exhausted": []},
            "next": "join",
        },
        left={"next": "join"},
        join={"join": "edges"},
    )

    assert "head again" in only(document, "deadlock").way


def test_two_conditions_that_may_both_hold_are_a_deadlock_in_front_of_a_join() -> None:
    document = nodes(
        a={"next": [{"to": ["choose", "other"]}]},
        choose={
            "fan_out": "all",
            "on_no_match": "end",
            "next": [{"to": "b", "when": "output.x"}, {"to": "c", "when": "output.y"}],
        },
        b={"next": "d"},
        c={"next": "d"},
        d={"next": "f"},
        other={"next": "f"},
        f={"join": "edges"},
    )

    assert "deadlock" in errors(checked(document))


def test_one_condition_has_one_answer_in_a_hop() -> None:
    document = nodes(
        a={"next": [{"to": ["choose", "other"]}]},
        choose={
            "fan_out": "first_match",
            "on_no_match": "end",
            "next": [{"to": "b", "when": "output.x"}, {"to": "c", "when": "output.y"}],
        },
        b={"next": "d"},
        c={"next": "d"},
        d={"next": "f"},
        other={"next": "f"},
        f={"join": "edges"},
    )

    assert checked(document).outcome == "sound"


# --- what never happens -------------------------------------------------------------------------------------------


def test_a_node_behind_a_condition_that_never_holds_never_runs() -> None:
    document = nodes(a={"next": [{"to": "b", "when": "false"}, {"to": "c"}]}, b={"next": "c"}, c={})

    assert only(document, "never_runs").node == "b"


def test_of_the_nodes_that_never_run_the_first_is_told() -> None:
    document = nodes(
        a={"next": [{"to": "b", "when": "false"}, {"to": "d"}]}, b={"next": "c"}, c={"next": "d"}, d={"next": "e"}, e={}
    )

    assert [flaw.node for flaw in checked(document).flaws] == ["b"]


def test_a_terminal_that_no_run_reaches_is_told() -> None:
    document = nodes(a={"next": [{"to": "b", "when": "false"}, {"to": "c"}]}, b={}, c={})

    assert only(document, "unreachable_terminal").node == "b"


def test_a_node_that_nothing_leads_to_never_runs() -> None:
    document = {"start": "a", **nodes(a={}, b={"next": "c"}, c={})}

    assert checked(document).outcome == "unsound"


def test_a_join_that_too_few_branches_can_reach_never_fills() -> None:
    document = nodes(
        a={"next": [{"to": ["b", "c"]}]},
        b={"next": [{"to": "j", "when": "false"}, {"to": "x"}]},
        c={"next": "j"},
        x={},
        j={"join": {"at_least": 2}},
    )

    flaw = only(document, "join_never_fills")

    assert flaw.node == "j"
    assert flaw.moves == ["a -> b, c"]


def test_a_loop_that_ends_only_at_its_limit_has_no_exit() -> None:
    document = nodes(a={"next": "b"}, b={"repeat": {"while": "true", "at_most": 3, "back_to": "a"}, "next": "c"}, c={})

    assert "loop_without_exit" in errors(checked(document))


@pytest.mark.parametrize("exhausted", ["d", []])
def test_a_way_on_at_the_limit_is_an_exit(exhausted: Any) -> None:
    repeat = {"while": "true", "at_most": 3, "back_to": "a", "exhausted": exhausted}
    document = nodes(a={"next": "b"}, b={"repeat": repeat}, d={})

    assert "loop_without_exit" not in errors(checked(document))


def test_tokens_that_multiply_with_every_round_are_told() -> None:
    document = nodes(
        head={"next": [{"to": ["a", "b"]}]},
        a={"next": "latch"},
        b={"next": "latch"},
        latch={"repeat": {"while": "output.again", "at_most": 9, "back_to": "head"}},
    )

    assert only(document, "unbounded_tokens").node == "head"


def test_a_graph_that_can_only_fail_never_completes() -> None:
    document = nodes(a={"next": [{"to": "b", "when": "false"}]}, b={})

    assert checked(document).outcome == "unsound"


# --- entered twice ------------------------------------------------------------------------------------------------


def test_two_tokens_at_a_plain_node_are_worth_a_note() -> None:
    document = nodes(a={"next": [{"to": ["b", "c"]}]}, b={"next": "d"}, c={"next": "d"}, d={"next": "e"}, e={})

    verdict = checked(document)

    assert verdict.outcome == "sound"
    assert [(flaw.code, flaw.node, flaw.severity) for flaw in verdict.flaws] == [("entered_twice", "d", "warning")]


def test_two_tokens_at_a_plain_node_in_front_of_a_join_are_an_error() -> None:
    flaw = only(CROWD, "entered_twice")

    assert (flaw.node, flaw.severity) == ("d", "error")


def test_the_message_about_a_crowd_names_one_join_or_several() -> None:
    several = nodes(
        a={"next": [{"to": ["b", "c", "e"]}]},
        b={"next": "d"},
        c={"next": "d"},
        d={"next": [{"to": ["f", "g"]}]},
        e={"next": [{"to": ["f", "g"]}]},
        f={"join": "edges"},
        g={"join": "edges"},
    )

    assert only(CROWD, "entered_twice").message == "d may run twice, but f waits for it only once."
    assert only(several, "entered_twice").message == "d may run twice, but f and g wait for it only once."


def test_two_tokens_of_one_branch_meet_at_its_fan_in() -> None:
    document = nodes(
        a={"next": [{"to": "b", "for_each": "${input.list}"}]},
        b={"next": [{"to": ["c", "d"]}]},
        c={"next": "e"},
        d={"next": "e"},
        e={"next": "j"},
        j={"join": "all", "of": "a", "next": "k"},
        k={"next": [{"to": ["l", "m"]}]},
        l={"next": "n"},
        m={"next": "n"},
        n={"join": "edges"},
    )

    assert errors(checked(document)) == []


def test_different_branches_at_one_node_are_no_crowd() -> None:
    document = nodes(
        a={"next": [{"to": ["b", "c"]}]},
        b={"next": "shared"},
        c={"next": "shared"},
        shared={"next": "j"},
        j={"join": "all"},
    )

    assert checked(document).flaws == []


# --- failures and early fan-ins -----------------------------------------------------------------------------------


def test_handlers_run_because_nodes_may_fail() -> None:
    document = nodes(
        a={"step": "s", "catch": [{"error": "CardDeclined", "to": "h"}], "next": "b"}, b={}, h={"next": "k"}, k={}
    )

    assert checked(document).flaws == []


def test_the_handler_of_a_fan_in_runs_because_branches_may_fail() -> None:
    document = nodes(
        a={"next": [{"to": "b", "for_each": "${input.list}"}]},
        b={"step": "s", "next": "j"},
        j={"join": "all", "catch": "h"},
        h={},
    )

    assert checked(document).flaws == []


def test_an_edge_for_errors_alone_is_not_taken_without_one() -> None:
    edges = [
        {"from": "a", "to": "b"},
        {"from": "a", "to": "h", "condition": "state._last_error != null"},
        {"from": "b", "to": "j"},
        {"from": "h", "to": "j"},
    ]
    listed = [{"id": name, "pass": True} for name in "abhj"]

    assert checked({"nodes": listed, "transitions": edges}).flaws == []


@pytest.mark.parametrize("late", ["cancel", "abandon", "merge"])
@pytest.mark.parametrize("join", ["any", {"at_least": 2}, {"at_least": 40}, {"at_least": "90%"}])
def test_early_fan_ins_are_sound_whoever_comes_first(join: Any, late: str) -> None:
    document = nodes(
        a={"next": [{"to": "b", "for_each": "${input.list}"}]},
        b={"next": [{"to": ["c", "d"]}]},
        c={"next": "e"},
        d={"next": "e"},
        e={"join": "edges", "next": [{"to": "j", "when": "output.ok"}, {"to": "x"}]},
        x={},
        j={"join": join, "late": late, "of": "a", "next": "k"},
        k={},
    )

    assert checked(document).flaws == []


# --- how much it costs --------------------------------------------------------------------------------------------


def test_a_search_that_is_cut_off_knows_nothing() -> None:
    verdict = checked(choices_in_a_row(20), work_max=30)

    assert verdict.outcome == "unknown"
    assert [finding.code for finding in verdict.findings()] == ["graph.not_checked"]


def choices_in_a_row(count: int) -> Document:
    drawn: Document = {}
    for number in range(count):
        drawn |= {
            f"s{number}": {"next": [{"to": f"a{number}", "when": "output.x"}, {"to": f"b{number}"}]},
            f"a{number}": {"next": f"m{number}"},
            f"b{number}": {"next": f"m{number}"},
            f"m{number}": {"next": f"s{number + 1}"},
        }
    return nodes(**drawn, **{f"s{count}": {}})


def choices_side_by_side(count: int) -> Document:
    drawn = choices_in_a_row(count)["nodes"]
    for number in range(count):
        drawn[f"m{number}"] = {"pass": True, "next": "end"}
    del drawn[f"s{count}"]
    start = {"pass": True, "next": [{"to": [f"s{number}" for number in range(count)]}]}
    return {"nodes": {"start": start, **drawn, "end": {"pass": True, "join": "edges"}}}


def test_choices_in_a_row_cost_as_many_positions_as_there_are_choices() -> None:
    verdict = checked(choices_in_a_row(100))

    assert (verdict.outcome, verdict.positions) == ("sound", 100)


def test_choices_side_by_side_cost_as_many_positions_as_there_are_choices() -> None:
    verdict = checked(choices_side_by_side(25))

    assert (verdict.outcome, verdict.positions) == ("sound", 25)


def test_a_long_list_of_conditions_costs_one_way_each() -> None:
    targets = [f"t{number}" for number in range(60)]
    entries = [{"to": name, "when": f"output.x{number}"} for number, name in enumerate(targets)]
    document = nodes(a={"next": [*entries, {"to": "rest"}]}, rest={}, **{name: {} for name in targets})

    assert checked(document).outcome == "sound"


def test_a_thousand_branches_are_like_three() -> None:
    document = nodes(a={"next": [{"to": "b", "copies": 1000}]}, b={"next": "j"}, j={"join": {"at_least": 900}})

    verdict = checked(document)

    assert verdict.outcome == "sound"
    assert verdict.positions < 20
