"""Conditions of every kind in every spelling: verdicts, what they saw, what they read."""

from __future__ import annotations

from typing import Any

import pytest

from weft.conditions import ConditionResult, EvaluationFailed, compile_condition

BOUND: dict[str, Any] = {
    "output": {"score": 85, "status": "error", "amount": 10, "error_code": "TIMEOUT", "revenue": 130, "tags": ["a"]},
    "nodes": {
        "enrich_data": {"output": {"revenue": 120_000}},
        "initial_score": {"output": {"score": 50, "list": [1, 2]}},
        "calculate_total": {"output": {"final_amount": 10}},
        "forecast": {"output": {"predicted_revenue": 100}},
        "referral_check": {"output": {"is_referral": True}},
        "a-b": {"output": {"n": 1}},
    },
    "state": {"_last_error": None},
    "error": None,
}
BOUND["ctx"] = BOUND["nodes"]


def verdict(spec: Any, **more: Any) -> ConditionResult:
    return compile_condition(spec).evaluate({**BOUND, **more})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("output.score >= 80", True),
        (True, True),
        (False, False),
        ({"type": "cel", "expression": "output.score >= 80 && ctx.enrich_data.output.revenue > 100000"}, True),
        ({"all": ["output.score >= 80", {"jsonpath": "$.status", "is": "==", "value": "error"}]}, True),
        ({"any": ["output.score > 90", {"schema": {"type": "array"}}]}, False),
        ({"not": "output.score > 90"}, True),
        ({"not": {"all": [True, {"any": [False, True]}]}}, False),
        ({"type": "composite", "operator": "AND", "conditions": [True, "output.score > 1"]}, True),
        ({"type": "composite", "operator": "OR", "conditions": [False, "output.score < 1"]}, False),
        ({"type": "composite", "operator": "NOT", "conditions": ["output.score < 1"]}, True),
    ],
)
def test_text_truth_and_composites(spec: Any, expected: bool) -> None:
    assert verdict(spec).value is expected


CURRENT = {"source": "current", "path": "output.score"}
EARLIER = {"source": "context", "node": "initial_score", "path": "output.score"}


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (CURRENT, ">", EARLIER, True),
        (CURRENT, "==", EARLIER, False),
        (EARLIER, "<=", CURRENT, True),
        (CURRENT, "in", {"value": [85, 86]}, True),
        (CURRENT, "!=", {"value": "85"}, True),
        ({"source": "context", "node": "referral_check", "path": "output.is_referral"}, "==", {"value": True}, True),
        ({"source": "context", "node": "a-b", "path": "output.n"}, "<", CURRENT, True),
        ({"source": "context", "node": "initial_score", "path": "output.list[1]"}, "==", {"value": 2}, True),
        ({"source": "current", "path": "output.tags"}, "contains", {"value": "a"}, True),
        ({"source": "current", "path": "output.status"}, "matches", {"value": "^err"}, True),
        ({"source": "current", "path": "output.nope"}, "exists", {"value": True}, False),
        ({"source": "context", "node": "nope", "path": "output.x"}, "empty", {"value": True}, True),
    ],
)
def test_values_of_two_nodes_are_compared(left: Any, operator: str, right: Any, expected: bool) -> None:
    spec = {"type": "cross_node_comparison", "left": left, "operator": operator, "right": right}
    assert verdict(spec).value is expected


def test_a_cross_node_comparison_shows_and_reads_both_sides() -> None:
    spec = {"type": "cross_node_comparison", "left": CURRENT, "operator": ">", "right": EARLIER}

    assert verdict(spec).seen == {"output.score": 85, "nodes.initial_score.output.score": 50}
    assert compile_condition(spec).paths == {("output", "score"), ("nodes", "initial_score", "output", "score")}


def test_a_missing_side_is_an_error_that_names_it() -> None:
    spec = {
        "type": "cross_node_comparison",
        "left": CURRENT,
        "operator": ">",
        "right": {"source": "context", "node": "a-b", "path": "output.score"},
    }
    with pytest.raises(EvaluationFailed) as caught:
        verdict(spec)
    assert caught.value.path == 'nodes["a-b"].output.score'


def test_outputs_may_be_bound_under_the_seeds_name_alone() -> None:
    spec = {"type": "cross_node_comparison", "left": CURRENT, "operator": ">", "right": EARLIER}
    bound = {"output": BOUND["output"], "ctx": BOUND["nodes"]}

    assert compile_condition(spec).evaluate(bound).value


def test_the_free_expression_divides_as_people_mean_it() -> None:
    text = (
        "(current.output.revenue - ctx.forecast.output.predicted_revenue) / ctx.forecast.output.predicted_revenue > 0.1"
    )
    condition = compile_condition({"type": "cross_node_comparison", "expression": text})

    assert condition.evaluate(BOUND).value  # 0.3; whole numbers alone would give 0
    assert not condition.evaluate({**BOUND, "output": {"revenue": 110}}).value
    assert condition.names == {"output", "ctx"}
    assert ("output", "revenue") in condition.paths


def test_cel_in_a_condition_sees_what_the_document_binds() -> None:
    assert verdict("item.id == 7 && _branch.index == 0", item={"id": 7}, _branch={"index": 0}).value
    assert verdict("state._last_error.type == 'CardDeclined'", state={"_last_error": {"type": "CardDeclined"}}).value
    assert verdict('nodes["a-b"].output.n == 1 && ctx["a-b"].output.n == 1').value


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("state._last_error != null", True),
        ("error != null && output.x > 1", True),
        ("error.type == 'X'", True),
        ('state["_last_error"] != null', True),
        ({"any": ["output.x > 1", {"not": "has(state._last_error)"}]}, True),
        ("output.error != null", False),
        ("state.last_error != null", False),
        ({"jsonpath": "$.error"}, False),
        ("input.list.exists(error, error > 1)", False),
    ],
)
def test_an_edge_mentions_error_when_its_condition_names_it(spec: Any, expected: bool) -> None:
    assert compile_condition(spec).mentions_error is expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("output.score", "int 85"),
        ("output.status", 'string "error"'),
        ("null", "null null"),
        ("output.tags", 'list ["a"]'),
    ],
)
def test_a_condition_yields_a_bool_and_nothing_else(text: str, said: str) -> None:
    with pytest.raises(EvaluationFailed) as caught:
        verdict(text)
    assert f"yielded {said}" in caught.value.message
    assert "x != null" in caught.value.hint


def test_a_verdict_shows_the_values_it_rests_on() -> None:
    assert verdict("output.score >= 80 && nodes.forecast.output.predicted_revenue < 5").seen == {
        "output.score": 85,
        "nodes.forecast.output.predicted_revenue": 100,
    }
    assert verdict("has(output.missing)").seen == {"output": BOUND["output"]}


def test_what_a_verdict_shows_stays_small() -> None:
    big = {"text": "x" * 10**6, "rows": [{"n": [list(range(100))] * 10}] * 10_000, "id": 10**500}
    seen = verdict({"any": [f"size(output.rows) == {n}" for n in range(500)]}, output=big).seen
    assert len(str(seen)) < 5_000
    assert len(str(verdict("size(output) == 3", output=big).seen)) < 2_000


def test_a_composite_stops_as_soon_as_the_answer_is_settled() -> None:
    assert verdict({"any": [True, "output.missing.x"]}).value
    assert not verdict({"all": [False, "output.missing.x"]}).value
    with pytest.raises(EvaluationFailed, match="missing"):
        verdict({"all": [True, "output.missing.x"]})
    with pytest.raises(EvaluationFailed, match="missing"):
        verdict({"any": ["output.missing.x", True]})
    with pytest.raises(EvaluationFailed, match="missing"):
        verdict({"not": "output.missing.x"})


def test_a_composite_reads_what_its_parts_read() -> None:
    condition = compile_condition({"all": ["state.a > 1", {"not": {"jsonpath": "$.b"}}, {"schema": True}]})

    assert condition.names == {"state", "output"}
    assert condition.paths == {("state", "a"), ("output", "b"), ("output",)}
    assert not condition.needs_sandbox


def test_the_same_condition_is_compiled_once() -> None:
    spec = {"all": ["output.a > 1", {"schema": {"type": "object"}}]}
    assert compile_condition(spec) is compile_condition({"all": ["output.a > 1", {"schema": {"type": "object"}}]})
    assert compile_condition("output.a > 1") is compile_condition("output.a > 1")


def test_a_failure_in_a_big_document_is_still_short() -> None:
    with pytest.raises(EvaluationFailed) as caught:
        verdict("output.x == " + " || output.x == ".join(str(n) for n in range(300)))
    assert len(caught.value.message) < 300
