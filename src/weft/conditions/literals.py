"""Check the operators and literals of comparisons when a condition is compiled."""

from __future__ import annotations

from typing import Any

from weft.conditions.conditions import Comparison
from weft.conditions.failures import BadExpression, ExpressionError, combine_errors, shorten
from weft.conditions.operators import AGGREGATES, UNARY, operator_words, split_operator
from weft.conditions.patterns import BadPattern, compile_pattern
from weft.core.findings import did_you_mean

_EQUAL = ("==", "!=")
_ORDERED = (">", ">=", "<", "<=")


def read_operator(word: Any) -> tuple[str, str]:
    """Return the aggregate (or "") and the operator that a word stands for.

    Raises:
        BadExpression: there is no such operator.
    """
    split = split_operator(word) if isinstance(word, str) else None
    if split is not None:
        return split
    known = operator_words()
    message = "the operator is missing." if word is None else f"there is no operator `{shorten(str(word), 40)}`."
    raise _bad(
        "operator",
        message,
        did_you_mean(str(word)[:40], known, quote="`") or f"The operators are {' '.join(known[:17])}.",
    )


def read_aggregate(word: Any, already: str) -> str:
    """Return the aggregate that ``agg`` names.

    Raises:
        BadExpression: there is no such aggregate, or the operator already has one.
    """
    if isinstance(word, str) and word in AGGREGATES and not already:
        return word
    raise _bad("operator", f"`agg` must be one of {', '.join(AGGREGATES)}, with an operator like `>`.")


def check_literal(comparison: Comparison) -> None:
    """Raise if the operator of a comparison cannot take its literal.

    Raises:
        BadExpression: the message says what the operator takes.
    """
    expected = _expected_literal(comparison)
    if expected:
        raise _bad("value", f"`{comparison.operator}` takes {expected}.")
    if comparison.operator == "matches":
        try:
            compile_pattern(comparison.value)
        except BadPattern as error:
            raise combine_errors([ExpressionError("expression.pattern", f"{error}.")]) from None


def _expected_literal(comparison: Comparison) -> str:
    operator, value = comparison.operator, comparison.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if comparison.aggregate:
        if operator in _EQUAL or operator in _ORDERED:
            return "" if is_number else "a number"
        return "" if operator in ("in", "not_in") and isinstance(value, list) else "no aggregate"
    if operator in UNARY:
        return "" if isinstance(value, bool) else "true or false"
    if operator in ("in", "not_in"):
        return "" if isinstance(value, list) else "a list"
    if operator in _ORDERED:
        return "" if is_number or isinstance(value, str) else "a number or a string"
    if operator == "matches":
        return "" if isinstance(value, str) else "a regular expression"
    return ""


def _bad(code: str, message: str, hint: str = "") -> BadExpression:
    return combine_errors([ExpressionError(f"condition.{code}", message, hint=hint)])
