"""The operators of CEL on JSON. Any two values can be equal; ordering and arithmetic check types and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from weft.conditions.budget import DEPTH_MAX, Evaluation, EvaluationFault
from weft.conditions.cel.values import INT_MAX, INT_MIN, NONE, Optional, cel_type

_NUMBERS = frozenset({int, float})
_ORDERED = frozenset({str, bool, datetime, timedelta})
_SCALARS = frozenset({str, int, float, bool, type(None), datetime, timedelta})


def equal_cel_values(frame: Evaluation, a: Any, b: Any, depth: int = 0) -> bool:
    """Compare for equality: numbers by value, lists and maps by their parts. Different types are unequal."""
    left, right = type(a), type(b)
    if left in _SCALARS:
        if left is str and right is str:
            frame.charge(len(a) >> 6)
        return bool(a == b) if left is right or (left in _NUMBERS and right in _NUMBERS) else False
    if depth > DEPTH_MAX:
        raise EvaluationFault(f"the values are nested deeper than {DEPTH_MAX} levels")
    if left is list and right is list:
        if len(a) != len(b):
            return False
        frame.charge(2 * len(a))
        return all(equal_cel_values(frame, x, y, depth + 1) for x, y in zip(a, b, strict=True))
    if (left is dict or isinstance(a, Mapping)) and (right is dict or isinstance(b, Mapping)):
        if len(a) != len(b):
            return False
        frame.charge(3 * len(a))
        return all(name in b and equal_cel_values(frame, part, b[name], depth + 1) for name, part in a.items())
    if left is Optional and right is Optional:
        return a is b or (a is not NONE and b is not NONE and equal_cel_values(frame, a.value, b.value, depth + 1))
    return a is b


def _differ(frame: Evaluation, a: Any, b: Any) -> bool:
    return not equal_cel_values(frame, a, b)


def _ordering(sign: str, test: Callable[[Any, Any], bool]) -> Callable[[Evaluation, Any, Any], bool]:
    def compare(frame: Evaluation, a: Any, b: Any) -> bool:
        left, right = type(a), type(b)
        if left is str and right is str:
            frame.charge(len(a) >> 6)
        if (left in _NUMBERS and right in _NUMBERS) or (left is right and left in _ORDERED):
            return test(a, b)
        raise EvaluationFault(f"`{sign}` cannot compare {cel_type(a)} with {cel_type(b)}")

    return compare


less = _ordering("<", lambda a, b: a < b)
less_or_same = _ordering("<=", lambda a, b: a <= b)
greater = _ordering(">", lambda a, b: a > b)
greater_or_same = _ordering(">=", lambda a, b: a >= b)


def contained(frame: Evaluation, a: Any, b: Any) -> bool:
    """Evaluate ``a in b``: whether ``a`` is an element of a list or a key of a map."""
    if type(b) is list:
        frame.charge(len(b))
        return any(equal_cel_values(frame, a, part) for part in b)
    if isinstance(b, Mapping):
        if type(a) not in (str, int, float, bool):
            raise EvaluationFault(f"the keys of a map are strings, not {cel_type(a)}")
        return type(a) is str and a in b
    raise EvaluationFault(f"`in` takes a list or a map, not {cel_type(b)}")


def _add(frame: Evaluation, a: Any, b: Any) -> Any:
    left, right = type(a), type(b)
    if left in _NUMBERS and right in _NUMBERS:
        return _checked(a + b)
    if left is str and right is str:
        frame.charge((len(a) + len(b)) >> 4)
        return a + b
    if left is list and right is list:
        frame.charge((len(a) + len(b)) >> 3)
        return a + b
    if {left, right} in ({datetime, timedelta}, {timedelta}):
        return _shift_time(lambda: a + b)
    raise _wrong_types("+", a, b)


def _subtract(_frame: Evaluation, a: Any, b: Any) -> Any:
    left, right = type(a), type(b)
    if left in _NUMBERS and right in _NUMBERS:
        return _checked(a - b)
    if left in (datetime, timedelta) and right in (left, timedelta):
        return _shift_time(lambda: a - b)
    raise _wrong_types("-", a, b)


def _multiply(_frame: Evaluation, a: Any, b: Any) -> Any:
    if type(a) in _NUMBERS and type(b) in _NUMBERS:
        return _checked(_checked(a) * _checked(b))
    raise _wrong_types("*", a, b)


def _divide(_frame: Evaluation, a: Any, b: Any) -> Any:
    """Divide. For two integers, the result is an integer, truncated towards zero."""
    if type(a) not in _NUMBERS or type(b) not in _NUMBERS:
        raise _wrong_types("/", a, b)
    if _checked(b) == 0:
        raise EvaluationFault("division by zero")
    if type(_checked(a)) is int and type(b) is int:
        whole = abs(a) // abs(b)
        return _checked(whole if (a < 0) == (b < 0) else -whole)
    return _checked(_quotient(a, b))


def divide_exactly(frame: Evaluation, a: Any, b: Any) -> Any:
    """Divide without truncating. For two integers, the result is a double unless it is whole."""
    if type(a) is int and type(b) is int and b != 0 and _checked(a) % _checked(b):
        return _quotient(a, b)
    return _divide(frame, a, b)


def _quotient(a: float, b: float) -> float:
    try:
        return a / b
    except OverflowError:
        raise EvaluationFault("the result of the division is too large") from None


def _remainder(_frame: Evaluation, a: Any, b: Any) -> int:
    """Return the remainder, with the sign of the dividend."""
    if type(a) is not int or type(b) is not int:
        raise _wrong_types("%", a, b)
    if _checked(b) == 0:
        raise EvaluationFault("division by zero")
    rest: int = abs(_checked(a)) % abs(b)
    return -rest if a < 0 else rest


def _negate(_frame: Evaluation, a: Any) -> Any:
    if type(a) in _NUMBERS:
        return _checked(-a)
    raise EvaluationFault(f"`-` takes a number, not {cel_type(a)}")


def _invert(_frame: Evaluation, a: Any) -> bool:
    if type(a) is bool:
        return not a
    raise EvaluationFault(f"`!` takes a bool, not {cel_type(a)}")


def index(_frame: Evaluation, a: Any, b: Any) -> Any:
    """Evaluate ``a[b]``: the element of a list, or the field of a map."""
    item = _item(a, b)
    if item is NONE:
        if type(a) is list:
            raise EvaluationFault(f"the list has {len(a)} elements; there is no [{b}]")
        raise EvaluationFault(f"there is no field `{b}`" if type(b) is str else f"a map has no field {b!r:.40}")
    return item


def index_optional(_frame: Evaluation, a: Any, b: Any) -> Optional:
    """Evaluate ``a[?b]`` and ``a.?b``, for which a missing element is not a fault."""
    if type(a) is Optional:
        if a is NONE:
            return NONE
        a = a.value
    if a is None:
        return NONE
    item = _item(a, b)
    return NONE if item is NONE else Optional(item)


def _item(a: Any, b: Any) -> Any:
    if type(a) is list:
        at = int(b) if type(b) is float and b.is_integer() else b
        if type(at) is not int:
            raise EvaluationFault(f"a list is indexed by int, not by {cel_type(b)}")
        return a[at] if 0 <= at < len(a) else NONE
    if isinstance(a, Mapping):
        return a.get(b, NONE) if type(b) is str else NONE
    raise EvaluationFault(f"{cel_type(a)} has no elements")


def _checked(number: Any) -> Any:
    if type(number) is int:
        if INT_MIN <= number <= INT_MAX:
            return number
        raise EvaluationFault("the integer does not fit in 64 bits")
    if math.isfinite(number):
        return number
    raise EvaluationFault("the result is not a finite number")


def _shift_time(move: Callable[[], Any]) -> Any:
    try:
        return move()
    except OverflowError:
        raise EvaluationFault("the result is outside the years 1 to 9999") from None


def _wrong_types(sign: str, a: Any, b: Any) -> EvaluationFault:
    return EvaluationFault(f"`{sign}` does not take {cel_type(a)} and {cel_type(b)}")


UNARY: dict[str, Callable[..., Any]] = {"-_": _negate, "!_": _invert}
BINARY: dict[str, Callable[..., Any]] = {
    "_==_": equal_cel_values,
    "_!=_": _differ,
    "_<_": less,
    "_<=_": less_or_same,
    "_>_": greater,
    "_>=_": greater_or_same,
    "@in": contained,
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _remainder,
    "_[_]": index,
    "_[?_]": index_optional,
    "_?._": index_optional,
}
