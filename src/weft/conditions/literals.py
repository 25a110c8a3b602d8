"""Check the operators and literals of comparisons when a condition is compiled."""

from __future__ import annotations

from typing import Any

from weft.conditions.comparisons import AGGREGATES, UNARY, split_operator, words
from weft.conditions.conditions import Comparison
from weft.conditions.failures import BadExpression, ExpressionError, cut, refusal
from weft.conditions.patterns import BadPattern, compile_pattern
from weft.core.findings import did_you_mean

_EQUAL = ("==", "!=")
_ORDERED = (">", ">=", "<", "<=")


def read_operator(word: Any) -> tuple[str, str]:
    """Return the aggregate (or "") and the operator for a word.

    Raises:
        BadExpression: there is no such operator.
    """
    found = split_operator(word) if isinstance(word, str) else None
    if found is not None:
        return found
    known = words()
    said = "an operator is needed." if word is None else f"there is no operator `{cut(str(word), 40)}`."
    raise _bad("operator", said, did_you_mean(str(word)[:40], known, quote="`") or f"There are {' '.join(known[:17])}.")


def read_aggregate(word: Any, already: str) -> str:
    """Return the aggregate that `agg` names.

    Raises:
        BadExpression: there is no such aggregate, or the operator already has one.
    """
    if isinstance(word, str) and word in AGGREGATES and not already:
        return word
    raise _bad("operator", f"`agg` is one of {', '.join(AGGREGATES)}, beside an operator like `>`.")


def check_literal(comparison: Comparison) -> None:
    """Reject a literal that its operator never takes.

    Raises:
        BadExpression: the message says what the operator takes.
    """
    wanted = _wanted(comparison)
    if wanted:
        raise _bad("value", f"`{comparison.operator}` takes {wanted}.")
    if comparison.operator == "matches":
        try:
            compile_pattern(comparison.value)
        except BadPattern as error:
            raise refusal([ExpressionError("expression.pattern", f"{error}.")]) from None


def _wanted(comparison: Comparison) -> str:
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
    return refusal([ExpressionError(f"condition.{code}", message, hint=hint)])
