"""The arithmetic of Ale: integers of up to ``INT_BITS_MAX`` bits, exact ratios, and floats."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from weft.scripts.ale.meter import AleFault, AleLimitReached, Meter
from weft.scripts.ale.values import INT_BITS_MAX, Procedure, describe_type

Number = int | float | Fraction
_NUMBERS: Final = frozenset({int, float, Fraction})
_SMALL: Final = 2**64


def number(value: Any, name: str) -> Any:
    """Return the value if it is a number, else raise a fault."""
    if type(value) not in _NUMBERS:
        raise AleFault(f"`{name}` needs numbers, not {describe_type(value)}")
    return value


def integer(value: Any, name: str) -> int:
    """Return an integer. A float without a fraction counts as one, because JSON does not distinguish them."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise AleFault(f"`{name}` needs an integer, not {describe_type(value) if type(value) not in _NUMBERS else value}")


def charge_number(meter: Meter, value: Any) -> Any:
    """Charge for the size of a result and return it. A ratio without a fraction becomes an integer."""
    if type(value) is float:
        return value
    if type(value) is Fraction:
        _charge_integer(meter, value.denominator)
        _charge_integer(meter, value.numerator)
        return value.numerator if value.denominator == 1 else value
    if not -_SMALL < value < _SMALL:
        _charge_integer(meter, value)
    return value


def _charge_integer(meter: Meter, value: int) -> None:
    bits = value.bit_length()
    if bits > INT_BITS_MAX:
        raise AleLimitReached("memory")
    meter.charge(bits >> 4)


def _compute(act: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    try:
        return act(a, b)
    except OverflowError:
        raise AleFault("an integer is too large for a float") from None


def _accumulate(name: str, act: Callable[[Any, Any], Any], start: int) -> Callable[..., Any]:
    def run(meter: Meter, *values: Any) -> Any:
        total: Any = start
        for value in values:
            total = charge_number(meter, _compute(act, total, number(value, name)))
        return total

    return run


def _subtract(meter: Meter, first: Any, *others: Any) -> Any:
    total = number(first, "-")
    if not others:
        return -total
    for value in others:
        total = charge_number(meter, _compute(operator.sub, total, number(value, "-")))
    return total


def _divide(meter: Meter, first: Any, *others: Any) -> Any:
    total = number(first, "/")
    if not others:
        return charge_number(meter, _quotient(1, total))
    for value in others:
        total = charge_number(meter, _quotient(total, number(value, "/")))
    return total


def _quotient(a: Any, b: Any) -> Any:
    if type(a) is not float and type(b) is not float:
        if not b:
            raise AleFault("division by zero")
        return Fraction(a) / b
    if b:
        return _compute(operator.truediv, a, b)
    if not a or a != a:  # noqa: PLR0124  # true for nan; isnan fails on an integer that is too large for a float
        return math.nan
    return math.copysign(math.inf, b) if a > 0 else -math.copysign(math.inf, b)


def _modulo(meter: Meter, a: Any, b: Any) -> Any:
    if not number(b, "mod"):
        raise AleFault("division by zero")
    return charge_number(meter, _compute(operator.mod, number(a, "mod"), b))


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
    """Return whether the values are not all equal."""
    return not _equal(meter, first, *others)


def _number_test(name: str, test: Callable[[Any], bool]) -> Callable[..., bool]:
    return lambda _meter, value: test(number(value, name))


def _is_even(value: Any) -> bool:
    return integer(value, "even?") % 2 == 0


PROCEDURES: Final = (
    Procedure("+", _accumulate("+", operator.add, 0), 0, None),
    Procedure("*", _accumulate("*", operator.mul, 1), 0, None),
    Procedure("-", _subtract, 1, None),
    Procedure("/", _divide, 1, None),
    Procedure("mod", _modulo, 2, 2),
    Procedure("inc", lambda meter, value: charge_number(meter, number(value, "inc") + 1), 1, 1),
    Procedure("dec", lambda meter, value: charge_number(meter, number(value, "dec") - 1), 1, 1),
    Procedure(">", _ordering(">", operator.gt), 1, None),
    Procedure(">=", _ordering(">=", operator.ge), 1, None),
    Procedure("<", _ordering("<", operator.lt), 1, None),
    Procedure("<=", _ordering("<=", operator.le), 1, None),
    Procedure("=", _equal, 1, None),
    Procedure("!=", _unequal, 1, None),
    Procedure("zero?", _number_test("zero?", lambda value: value == 0), 1, 1),
    Procedure("pos?", _number_test("pos?", lambda value: value > 0), 1, 1),
    Procedure("neg?", _number_test("neg?", lambda value: value < 0), 1, 1),
    Procedure("even?", _number_test("even?", _is_even), 1, 1),
    Procedure("odd?", _number_test("odd?", lambda value: not _is_even(value)), 1, 1),
)
