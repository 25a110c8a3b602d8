"""Conditions that do not hold together are refused with all their errors, each with its place and a suggestion."""

from __future__ import annotations

from typing import Any

import pytest

from weft.conditions import BadExpression, ExpressionError, compile_condition


def errors(spec: Any) -> tuple[ExpressionError, ...]:
    with pytest.raises(BadExpression) as caught:
        compile_condition(spec)
    return caught.value.errors


@pytest.mark.parametrize(
    ("spec", "code", "path", "said"),
    [
        (None, "kind", "", "not null"),
        (3, "kind", "", "not a int"),
        ([], "kind", "", "not a list"),
        ({}, "kind", "", "none of the fields schema"),
        ({"schem": True}, "kind", "", "Did you mean `schema`?"),
        ({"schema": True, "jsonpath": "$"}, "kind", "", "`schema` and `jsonpath` are separate"),
        ({"type": "CEL", "expression": "true"}, "kind", "type", "Did you mean `cel`?"),
        ({"type": "lua"}, "kind", "type", "The kinds are cel,"),
        ({"type": ["cel"]}, "kind", "type", "no kind"),
        ({"type": "cel"}, "field", "", "`expression` must be given"),
        ({"type": "cel", "expression": 3}, "field", "", "`expression` must be given"),
        ({"type": "cel", "expresion": "true"}, "field", "", "Did you mean `expression`?"),
        ({"type": "cel", "expression": "true", "x": 1}, "field", "", "no field `x`"),
        ({"jsonpath": "$.a", "is": "=~", "value": 1}, "operator", "is", "no operator `=~`"),
        ({"jsonpath": "$.a", "is": "contain", "value": 1}, "operator", "is", "Did you mean `contains`?"),
        ({"jsonpath": "$.a", "is": "sum_greater", "value": 1}, "operator", "is", "no operator"),
        ({"type": "jsonpath", "query": "$.a", "operator": "!==", "value": 1}, "operator", "operator", "Did you mean"),
        ({"jsonpath": "$.a", "is": ">"}, "field", "", "needs a `value`"),
        ({"jsonpath": "$.a", "is": "in", "value": 3}, "value", "value", "takes a list"),
        ({"jsonpath": "$.a", "is": ">", "value": None}, "value", "value", "a number or a string"),
        ({"jsonpath": "$.a", "is": "exists", "value": "yes"}, "value", "value", "true or false"),
        ({"jsonpath": "$.a", "is": "sum_gt", "value": "x"}, "value", "value", "takes a number"),
        ({"jsonpath": "$.a", "is": "sum", "value": True}, "value", "value", "takes a number"),
        ({"jsonpath": "$.a", "agg": "median", "is": ">", "value": 1}, "operator", "agg", "count, sum"),
        ({"jsonpath": "$.a", "agg": "sum", "is": "sum_gt", "value": 1}, "operator", "agg", "count, sum"),
        ({"jsonpath": "$.a", "agg": "sum", "is": "matches", "value": "a"}, "value", "value", "no aggregate"),
        ({"jsonpath": 3, "is": "exists"}, "field", "jsonpath", "as text"),
        ({"all": []}, "value", "all", "at least one"),
        ({"any": "true"}, "value", "any", "at least one"),
        ({"not": 3}, "kind", "not", "not a int"),
        ({"type": "composite", "operator": "XOR", "conditions": [True]}, "operator", "operator", "AND, OR, NOT"),
        ({"type": "composite", "operator": "NOT", "conditions": [True, True]}, "value", "conditions", "one"),
        ({"type": "schema_validation"}, "field", "", "exactly one of `schema` and `schema_ref`"),
        ({"type": "schema_validation", "schema": True, "schema_ref": "cas://x"}, "field", "", "exactly one"),
        ({"type": "schema_validation", "schema": True, "invert": "yes"}, "value", "invert", "true or false"),
        (
            {"type": "cross_node_comparison", "left": 1, "operator": "==", "right": {"value": 1}},
            "field",
            "left",
            "a side must be",
        ),
        (
            {"type": "cross_node_comparison", "left": {"value": 1}, "operator": "sum_gt", "right": {"value": 1}},
            "operator",
            "operator",
            "only a condition of the kind jsonpath",
        ),
        (
            {
                "type": "cross_node_comparison",
                "left": {"source": "current", "path": "score"},
                "operator": "==",
                "right": {"value": 1},
            },
            "field",
            "left",
            "path: output.x",
        ),
        (
            {"type": "cross_node_comparison", "expression": "true", "operator": "=="},
            "field",
            "",
            "cannot be combined with other fields",
        ),
        ({"python": "def evaluate(output, context): return True"}, "python_off", "python", "are not enabled"),
    ],
)
def test_a_mistake_is_named_with_its_place(spec: Any, code: str, path: str, said: str) -> None:
    found = errors(spec)[0]

    assert found.code == f"condition.{code}"
    assert found.path == path
    assert said in str(found)


def test_all_mistakes_are_found_at_once() -> None:
    spec = {
        "all": [
            "output.score >",
            {"jsonpath": "$.a[", "is": "almost", "value": 1},
            {"any": [{"schema": {"type": "strin"}}, {"not": "foo(1)"}]},
            {"type": "cross_node_comparison", "left": {}, "operator": "nope", "right": {}},
            {"jsonpath": "$.a", "is": "matches", "value": "("},
            "fine == 1",
        ]
    }

    assert [(error.path, error.code) for error in errors(spec)] == [
        ("all[0]", "expression.syntax"),
        ("all[1].jsonpath", "expression.jsonpath"),
        ("all[1].is", "condition.operator"),
        ("all[2].any[0].schema", "expression.schema"),
        ("all[2].any[1].not", "expression.unknown_function"),
        ("all[3].left", "condition.field"),
        ("all[3].operator", "condition.operator"),
        ("all[3].right", "condition.field"),
        ("all[4].value", "expression.pattern"),
    ]


def test_a_loader_sees_the_errors_from_its_own_document() -> None:
    (found,) = errors({"not": "a +"})

    seen = found.inside("nodes.score.next[0].when")

    assert seen.path == "nodes.score.next[0].when.not"
    assert str(seen).startswith("nodes.score.next[0].when.not: the expression ends too early.\n    a +\n       ^")


def test_too_many_and_too_deep_conditions_are_refused_quickly() -> None:
    deep: Any = True
    for _ in range(500):
        deep = {"not": deep}
    wide = {"all": [True] * 100_000}
    bushy: Any = True
    for _ in range(6):
        bushy = {"any": [bushy] * 8}

    for spec in (deep, wide, bushy):
        assert "at most" in str(errors(spec)[0])


def test_what_is_not_json_is_refused() -> None:
    cyclic: dict[str, Any] = {}
    cyclic["not"] = cyclic

    for spec in (cyclic, {"all": [object()]}, object()):
        assert "text or JSON" in errors(spec)[0].message
