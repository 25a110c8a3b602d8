"""Random expressions get the same answer from our evaluator and from Google's, or are refused by both."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from tests.conditions.oracle import DATA, REFUSED, ask, expressions
from tests.scale import MARKS, scaled
from weft.conditions import EvaluationFailed, compile_expression

pytestmark = MARKS


def typed(value: Any) -> Any:
    """1, 1.0 and True are three values."""
    if isinstance(value, list):
        return [typed(part) for part in value]
    if isinstance(value, dict):
        return {name: typed(part) for name, part in value.items()}
    return type(value).__name__, value


def ours(text: str) -> Any:
    try:
        return compile_expression(text).evaluate(DATA)
    except EvaluationFailed:
        return REFUSED


@settings(max_examples=scaled(200, 800))
@given(expressions)
def test_both_evaluators_agree(text: str) -> None:
    assert typed(ours(text)) == typed(ask(text, DATA))


def test_the_oracle_is_able_to_disagree() -> None:
    assert ask("n + 1", DATA) == 8
    assert ask("n + d", DATA) is REFUSED
    assert ours("n + d") == 9.5
