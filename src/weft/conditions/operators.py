"""The operators of JSONPath and cross-node conditions, and their aggregates.

Several matches form a list. A missing value counts as empty and is equal to nothing; ``<``, ``in``, ``contains`` and
``matches`` are false for it. Ordering a string and a number is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.conditions.budget import Evaluation, EvaluationFault
from weft.conditions.cel.operators import equal_cel_values, greater, greater_or_same, less, less_or_same
from weft.conditions.cel.values import MISSING, cel_type
from weft.conditions.patterns import matches

Compare = Callable[[Evaluation, Any, Any], bool]
UNARY: Final = frozenset({"exists", "empty"})
AGGREGATES: Final = ("count", "sum", "min", "max", "avg")
_SUFFIXES = {"eq": "==", "ne": "!=", "gt": ">", "gte": ">=", "ge": ">=", "lt": "<", "lte": "<=", "le": "<="}


def _equal(frame: Evaluation, a: Any, b: Any) -> bool:
    return a is not MISSING and equal_cel_values(frame, a, b)


def _ordered(compare: Compare) -> Compare:
    return lambda frame, a, b: a is not MISSING and compare(frame, a, b)


def _in(frame: Evaluation, a: Any, b: Any) -> bool:
    if type(b) is not list:
        raise EvaluationFault(f"`in` takes a list of values, not {cel_type(b)}")
    frame.charge(len(b))
    return a is not MISSING and any(equal_cel_values(frame, a, part) for part in b)


def _contains(frame: Evaluation, a: Any, b: Any) -> bool:
    """Return whether a list contains an element, a string a substring, or an object a field."""
    if a is MISSING:
        return False
    if type(a) is list:
        frame.charge(len(a))
        return any(equal_cel_values(frame, part, b) for part in a)
    if type(a) is str and type(b) is str:
        frame.charge(len(a) >> 4)
        return b in a
    if isinstance(a, Mapping):
        return type(b) is str and b in a
    raise EvaluationFault(f"`contains` takes a list, a string or an object, not {cel_type(a)}")


def _exists(_frame: Evaluation, a: Any, b: Any) -> bool:
    return (a is not MISSING) is b


def _empty(_frame: Evaluation, a: Any, b: Any) -> bool:
    is_empty = a is MISSING or a is None or ((type(a) in (str, list) or isinstance(a, Mapping)) and not a)
    return is_empty is b


def _match(frame: Evaluation, a: Any, b: Any) -> bool:
    if a is MISSING:
        return False
    if type(a) is str and type(b) is str:
        return matches(frame, a, b)
    raise EvaluationFault(f"`matches` takes a string and a pattern, not {cel_type(a)} and {cel_type(b)}")


OPERATORS: Final[dict[str, Compare]] = {
    "==": _equal,
    "!=": lambda frame, a, b: not _equal(frame, a, b),
    ">": _ordered(greater),
    ">=": _ordered(greater_or_same),
    "<": _ordered(less),
    "<=": _ordered(less_or_same),
    "in": _in,
    "not_in": lambda frame, a, b: not _in(frame, a, b),
    "contains": _contains,
    "exists": _exists,
    "empty": _empty,
    "matches": _match,
}


def split_operator(word: str) -> tuple[str, str] | None:
    """Return the aggregate (or "") and the operator of ``>``, ``sum_gt``, ``count``, …; None for an unknown word."""
    if word in OPERATORS:
        return "", word
    aggregate, _, suffix = word.partition("_")
    if aggregate not in AGGREGATES or (suffix and suffix not in _SUFFIXES):
        return None
    return aggregate, _SUFFIXES.get(suffix, "==")


def operator_words() -> list[str]:
    """Return every word that ``split_operator`` knows, for hints."""
    return [*OPERATORS, *AGGREGATES, *(f"{a}_{s}" for a in AGGREGATES for s in _SUFFIXES)]


def aggregate(frame: Evaluation, name: str, found: Any) -> Any:
    """Compute the count, sum, minimum, maximum or average of the matches, or of the list at a single path."""
    values = [] if found is MISSING else found if type(found) is list else [found]
    frame.charge(len(values))
    if name == "count":
        return len(values)
    for value in values:
        if type(value) not in (int, float):
            raise EvaluationFault(f"`{name}` takes numbers, not {cel_type(value)}")
    if name == "sum":
        return _total(values)
    if not values:
        raise EvaluationFault(f"cannot take the {name} of an empty list")
    return _total(values) / len(values) if name == "avg" else (min if name == "min" else max)(values)


def _total(values: list[Any]) -> Any:
    try:
        return sum(values) if all(type(value) is int for value in values) else math.fsum(values)
    except OverflowError:
        raise EvaluationFault("the sum is too large") from None


def single_match(found: Any, operator: str) -> Any:
    """Return the only match of a query, or MISSING.

    Raises:
        EvaluationFault: the query has several matches, but the operator takes one value.
    """
    if len(found) == 1:
        return found[0]
    if not found:
        return MISSING
    raise EvaluationFault(
        f"the path has {len(found)} matches, but `{operator}` takes one value",
        hint="Use contains, count, sum, min, max or avg.",
    )
