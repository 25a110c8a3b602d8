"""Arithmetic of Ale: integers of any size (within reason), exact ratios, floats. Whole ratios become integers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from weft.scripts.ale.meter import AleFault, AleLimitReached, Meter
from weft.scripts.ale.values import INT_BITS_MAX, Procedure, kind

Number = int | float | Fraction
_NUMBERS: Final = frozenset({int, float, Fraction})
_SMALL: Final = 2**64


def number(value: Any, name: str) -> Any:
    """Return the value if it is a number."""
    if type(value) not in _NUMBERS:
        raise AleFault(f"`{name}` needs numbers, not {kind(value)}")
    return value


def integer(value: Any, name: str) -> int:
    """Return the value if it is an integer. Whole floats are, because JSON does not tell them apart."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise AleFault(f"`{name}` needs an integer, not {kind(value) if type(value) not in _NUMBERS else value}")


def settled(meter: Meter, value: Any) -> Any:
    """Charge for the size of a result and return it."""
    if type(value) is float:
        return value
    if type(value) is Fraction:
        _pay(meter, value.denominator)
        _pay(meter, value.numerator)
        return value.numerator if value.denominator == 1 else value
    if not -_SMALL < value < _SMALL:
        _pay(meter, value)
    return value


def _pay(meter: Meter, value: int) -> None:
    bits = value.bit_length()
    if bits > INT_BITS_MAX:
        raise AleLimitReached("memory")
    meter.charge(bits >> 4)


def _applied(act: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    try:
        return act(a, b)
    except OverflowError:
        raise AleFault("an integer is too large for a float") from None


def _folding(name: str, act: Callable[[Any, Any], Any], start: int) -> Callable[..., Any]:
    def run(meter: Meter, *values: Any) -> Any:
        total: Any = start
        for value in values:
            total = settled(meter, _applied(act, total, number(value, name)))
        return total

    return run


def _subtract(meter: Meter, first: Any, *others: Any) -> Any:
    total = number(first, "-")
    if not others:
        return -total
    for value in others:
        total = settled(meter, _applied(operator.sub, total, number(value, "-")))
    return total


def _divide(meter: Meter, first: Any, *others: Any) -> Any:
    total = number(first, "/")
    if not others:
        return settled(meter, _quotient(1, total))
    for value in others:
        total = settled(meter, _quotient(total, number(value, "/")))
    return total


def _quotient(a: Any, b: Any) -> Any:
    if type(a) is not float and type(b) is not float:
        if not b:
            raise AleFault("division by zero")
        return Fraction(a) / b
    if b:
        return _applied(operator.truediv, a, b)
    if not a or a != a:  # noqa: PLR0124  # nan; isnan fails on an integer that is too large for a float
        return math.nan
    return math.copysign(math.inf, b) if a > 0 else -math.copysign(math.inf, b)


def _modulo(meter: Meter, a: Any, b: Any) -> Any:
    if not number(b, "mod"):
        raise AleFault("division by zero")
    return settled(meter, _applied(operator.mod, number(a, "mod"), b))


def _ordering(name: str, compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def run(_meter: Meter, first: Any, *others: Any) -> bool:
        holds, left = True, number(first, name)
        for value in others:
            right = number(value, name)
            holds = holds and compare(left, right)
            left = right
        return holds

    return run


_equal = _ordering("=", operator.eq)


def _unequal(meter: Meter, first: Any, *others: Any) -> bool:
    """Return whether not all are equal."""
    return not _equal(meter, first, *others)


def _testing(name: str, test: Callable[[Any], bool]) -> Callable[..., bool]:
    return lambda _meter, value: test(number(value, name))


def _is_even(value: Any) -> bool:
    return integer(value, "even?") % 2 == 0


TABLE: Final = (
    Procedure("+", _folding("+", operator.add, 0), 0, None),
    Procedure("*", _folding("*", operator.mul, 1), 0, None),
    Procedure("-", _subtract, 1, None),
    Procedure("/", _divide, 1, None),
    Procedure("mod", _modulo, 2, 2),
    Procedure("inc", lambda meter, value: settled(meter, number(value, "inc") + 1), 1, 1),
    Procedure("dec", lambda meter, value: settled(meter, number(value, "dec") - 1), 1, 1),
    Procedure(">", _ordering(">", operator.gt), 1, None),
    Procedure(">=", _ordering(">=", operator.ge), 1, None),
    Procedure("<", _ordering("<", operator.lt), 1, None),
    Procedure("<=", _ordering("<=", operator.le), 1, None),
    Procedure("=", _equal, 1, None),
    Procedure("!=", _unequal, 1, None),
    Procedure("zero?", _testing("zero?", lambda value: value == 0), 1, 1),
    Procedure("pos?", _testing("pos?", lambda value: value > 0), 1, 1),
    Procedure("neg?", _testing("neg?", lambda value: value < 0), 1, 1),
    Procedure("even?", _testing("even?", _is_even), 1, 1),
    Procedure("odd?", _testing("odd?", lambda value: not _is_even(value)), 1, 1),
)
