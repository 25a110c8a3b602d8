"""The condition examples of the seeds, as they are printed there."""

from __future__ import annotations

from typing import Any

import pytest

from weft.conditions import compile_condition

BLOBS = {
    "cas://sha256:schema123": b'{"type": "object", "required": ["status"]}',
    "cas://sha256:retry_schema": b'{"type": "object"}',
    "cas://sha256:python_evaluator": b"""
def evaluate(output, context):
    \"\"\"
    output: current node output
    context: dict of all previous node outputs
    \"\"\"
    # Complex business logic
    revenue = output.get('revenue', 0)
    previous_revenue = context.get('last_month', {}).get('output', {}).get('revenue', 0)

    growth_rate = (revenue - previous_revenue) / previous_revenue if previous_revenue > 0 else 0

    # Multi-factor decision
    if growth_rate > 0.2 and output.get('churn_rate', 1) < 0.05:
        return True

    return False
""",
}

PAYMENT = {
    "type": "composite",
    "operator": "AND",
    "conditions": [
        {"type": "cel", "expression": "output.status != 'success'"},
        {
            "type": "jsonpath",
            "query": "$.error_code",
            "operator": "in",
            "value": ["TIMEOUT", "RATE_LIMIT", "TEMP_ERROR"],
        },
        {
            "type": "cross_node_comparison",
            "left": {"source": "current", "path": "output.amount"},
            "operator": "==",
            "right": {"source": "context", "node": "calculate_total", "path": "output.final_amount"},
        },
    ],
}
ENTERPRISE = "$.data.customers[?(@.tier == 'enterprise')].length()"
SCHEMA = {
    "type": "object",
    "required": ["status", "data"],
    "properties": {"status": {"const": "success"}, "data": {"type": "array", "minItems": 1}},
}
RETRY = {
    "type": "composite",
    "operator": "AND",
    "conditions": [
        {"type": "cel", "expression": "output.status != 'success'"},
        {"type": "jsonpath", "query": "$.errors.length()", "operator": "<", "value": 3},
        {"type": "schema_validation", "schema_ref": "cas://sha256:retry_schema"},
    ],
}
REFERRED = {
    "type": "composite",
    "operator": "OR",
    "conditions": [
        {"type": "cel", "expression": "output.score >= 80"},
        {
            "type": "cross_node_comparison",
            "left": {"source": "context", "node": "referral_check", "path": "output.is_referral"},
            "operator": "==",
            "right": {"value": True},
        },
    ],
}
GROWTH = {
    "type": "cross_node_comparison",
    "expression": "(current.output.revenue - ctx.forecast.output.predicted_revenue)"
    " / ctx.forecast.output.predicted_revenue > 0.1",
}
BETTER = {
    "type": "cross_node_comparison",
    "left": {"source": "current", "path": "output.final_score"},
    "operator": ">",
    "right": {"source": "context", "node": "initial_score", "path": "output.score"},
}
TOTAL = {"calculate_total": {"output": {"final_amount": 10}}}


@pytest.mark.parametrize(
    ("spec", "output", "context", "expected"),
    [
        ({"type": "cel", "expression": "output.status != 200"}, {"status": 500}, {}, True),
        ({"type": "cel", "expression": "output.status != 200 && output.retry_count < 5"}, {"status": 200}, {}, False),
        (
            {"type": "cel", "expression": "output.score >= 80 && ctx.enrich_data.output.revenue > 100000"},
            {"score": 90},
            {"enrich_data": {"output": {"revenue": 250_000}}},
            True,
        ),
        (
            {"type": "cel", "expression": "output.status == 'success' && output.amount >= 1000"},
            {"status": "success", "amount": 5},
            {},
            False,
        ),
        ({"type": "schema_validation", "schema": SCHEMA, "invert": True}, {"status": "success", "data": []}, {}, True),
        (
            {"type": "schema_validation", "schema": SCHEMA, "invert": True},
            {"status": "success", "data": [1]},
            {},
            False,
        ),
        ({"type": "schema_validation", "schema_ref": "cas://sha256:schema123"}, {"status": 1}, {}, True),
        (
            {"type": "jsonpath", "query": ENTERPRISE, "operator": ">", "value": 0},
            {"data": {"customers": [{"tier": "enterprise"}]}},
            {},
            True,
        ),
        (
            {"type": "jsonpath", "query": ENTERPRISE, "operator": ">", "value": 0},
            {"data": {"customers": [{"tier": "free"}]}},
            {},
            False,
        ),
        (
            {"type": "jsonpath", "query": "$.transactions[*].amount", "operator": "sum_gt", "value": 10000},
            {"transactions": [{"amount": 9_000}, {"amount": 1_000.5}]},
            {},
            True,
        ),
        (BETTER, {"final_score": 2}, {"initial_score": {"output": {"score": 1}}}, True),
        (GROWTH, {"revenue": 120}, {"forecast": {"output": {"predicted_revenue": 100}}}, True),
        (GROWTH, {"revenue": 105}, {"forecast": {"output": {"predicted_revenue": 100}}}, False),
        (RETRY, {"status": "failed", "errors": ["a", "b"]}, {}, True),
        (RETRY, {"status": "failed", "errors": ["a", "b", "c"]}, {}, False),
        (REFERRED, {"score": 10}, {"referral_check": {"output": {"is_referral": True}}}, True),
        (REFERRED, {"score": 90}, {}, True),
        (PAYMENT, {"status": "error", "error_code": "TIMEOUT", "amount": 10}, TOTAL, True),
        (PAYMENT, {"status": "error", "error_code": "STOLEN", "amount": 10}, TOTAL, False),
        (PAYMENT, {"status": "success"}, TOTAL, False),
        (
            {
                "type": "python_sandbox",
                "code_ref": "cas://sha256:python_evaluator",
                "timeout_ms": 1000,
                "max_memory_mb": 50,
            },
            {"revenue": 130, "churn_rate": 0.01},
            {"last_month": {"output": {"revenue": 100}}},
            True,
        ),
        (
            {
                "type": "python_sandbox",
                "code_ref": "cas://sha256:python_evaluator",
                "timeout_ms": 1000,
                "max_memory_mb": 50,
            },
            {"revenue": 110, "churn_rate": 0.01},
            {"last_month": {"output": {"revenue": 100}}},
            False,
        ),
    ],
)
def test_an_example_of_the_seeds_gives_its_answer(spec: Any, output: Any, context: Any, expected: bool) -> None:
    condition = compile_condition(spec, resolve=BLOBS.__getitem__, python=True)

    assert condition.evaluate({"output": output, "ctx": context}).value is expected
    assert condition.evaluate({"output": output, "ctx": context, "nodes": context}).value is expected
