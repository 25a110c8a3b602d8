"""The values of Ale: Python's values for JSON, and keywords, ratios, lists, pairs and functions.

Vectors are Python lists. Objects are dicts whose keys are strings (``:name`` and "name" are the same key). Neither is
ever changed in place. Lists, pairs and the results of functions like ``map`` have types of their own. Unlike a vector,
a list grows at its front. Null is the empty list. Only ``false`` is false.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, Final

from weft.scripts.ale.meter import AleFault, AleLimitReached, Meter
from weft.scripts.limits import DEPTH_MAX, OUTPUT_BYTES_MAX, OUTPUT_NODES_MAX

INT_BITS_MAX: Final = 8_192
_PRINT_DEPTH_MAX: Final = 60
_ESCAPES: Final = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)
_INT64: Final = range(-(2**63), 2**63)


class Keyword(str):
    """A keyword, ``:name``. As a key, it is equal to the string without the colon."""

    __slots__ = ()


class AleList(tuple[Any, ...]):
    """A list, ``'(1 2)``. Never empty, because the empty list is null."""

    __slots__ = ()


class LazySequence(tuple[Any, ...]):
    """The result of ``map``, ``filter``, ``take``, ``drop``, ``concat`` and ``range``.

    In Ale, these are lazy, and comparing or printing them has no useful result. Here they are computed at once and can
    be outputs, but comparing or printing them is an error.
    """

    __slots__ = ()


class Pair(tuple[Any, Any]):
    """A pair: ``(cons :a 1)``, or an entry of an object. ``first`` returns its key, and ``rest`` its value."""

    __slots__ = ()


def make_list(values: Iterable[Any]) -> AleList | None:
    """Make a list, or null if there are no values."""
    return AleList(values) or None


class Procedure:
    """A built-in function, called as ``run(meter, *arguments)``."""

    __slots__ = ("arguments_max", "arguments_min", "name", "run")

    def __init__(self, name: str, run: Callable[..., Any], arguments_min: int, arguments_max: int | None) -> None:
        self.name = name
        self.run = run
        self.arguments_min = arguments_min
        self.arguments_max = arguments_max

    def arity_error(self, given: int) -> str:
        """Return the error for this number of arguments, or an empty string if it is allowed."""
        least, most = self.arguments_min, self.arguments_max
        if given >= least and (most is None or given <= most):
            return ""
        expected = f"at least {least}" if most is None else f"{least} to {most}"
        if least == most:
            expected = str(least)
        return f"`{self.name}` takes {expected} argument{'s' * (expected != '1')}, not {given}"


class FunctionShape:
    """The compiled code of one ``lambda`` in the text."""

    __slots__ = ("body", "cost", "height", "parameters", "rest", "slots")

    def __init__(self, body: Callable[[list[Any]], Any], parameters: int, *, rest: bool) -> None:
        self.body = body
        self.parameters = parameters
        self.rest = rest  # the last parameter takes all remaining arguments
        self.slots = 0  # additional slots of the frame, for the names that the body binds
        self.cost = 1  # steps that a call costs
        self.height = 1  # Python frames that a call needs


class Closure:
    """A function made by a ``lambda``: its compiled code, and the frame in which it was made."""

    __slots__ = ("frame", "shape")

    def __init__(self, shape: FunctionShape, frame: list[Any] | None) -> None:
        self.shape = shape
        self.frame = frame


def describe_type(value: Any) -> str:
    """Return the type of a value, as messages name it."""
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a string", Keyword: "a keyword", list: "a sequence", dict: "an object"}
    names |= {AleList: "a sequence", LazySequence: "a sequence", Pair: "a pair"}
    if type(value) in names:
        return names[type(value)]
    return "a function" if type(value) in (Procedure, Closure) else "a number"


def equal_ale_values(meter: Meter, one: Any, other: Any) -> bool:
    """Compare two values for equality, including their types: 5 is not equal to 5.0."""
    pairs = [(one, other)]
    while pairs:
        meter.charge(1)
        a, b = pairs.pop()
        if type(a) is LazySequence or type(b) is LazySequence:
            raise _lazy_fault("compared")
        if type(a) is not type(b):
            return False
        if type(a) in (list, AleList, Pair):
            if len(a) != len(b):
                return False
            meter.take(len(a) * 64)
            pairs.extend(zip(a, b, strict=True))
        elif type(a) is dict:
            meter.take(len(a) * 64)
            if a.keys() != b.keys():
                return False
            pairs.extend((a[key], b[key]) for key in a)
        else:
            if type(a) in (str, Keyword):
                meter.charge(len(a) >> 6)
            if a != b:
                return False
    return True


def _lazy_fault(what: str) -> AleFault:
    return AleFault(f"a lazy sequence cannot be {what}; convert it to a vector first, with `(seq->vector …)`")


def to_text(meter: Meter, value: Any) -> str:
    """Convert a value to text, as ``str`` does: strings have no quotes, and null is empty."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    return _printed_value(meter, value, 0)


def _printed_value(meter: Meter, value: Any, depth: int) -> str:
    meter.charge(1)
    shape = type(value)
    if shape is bool:
        return "#t" if value else "#f"
    if shape is int or shape is float or shape is Fraction:
        return str(value)
    if value is None:
        return "()"
    if shape is str:
        meter.take(len(value) * 8)
        return f'"{value.translate(_ESCAPES)}"'
    if shape is Keyword:
        return f":{value}"
    if shape is LazySequence:
        raise _lazy_fault("printed")
    if shape not in _BRACKETS:
        return "function"
    if depth >= _PRINT_DEPTH_MAX:
        raise AleLimitReached("depth")
    if shape is Pair:
        parts = [_printed_value(meter, value[0], depth + 1), ".", _printed_value(meter, value[1], depth + 1)]
    elif shape is not dict:
        parts = [_printed_value(meter, item, depth + 1) for item in value]
    else:
        parts = [f":{key} {_printed_value(meter, item, depth + 1)}" for key, item in value.items()]
    whole = " ".join(parts)
    meter.take(len(whole) * 4)
    opening, closing = _BRACKETS[shape]
    return f"{opening}{whole}{closing}"


_BRACKETS: Final[dict[type, tuple[str, str]]] = {
    list: ("[", "]"),
    dict: ("{", "}"),
    AleList: ("(", ")"),
    Pair: ("(", ")"),
}


class _OutputBudget:
    """The remaining size of the output. Values may share parts, so a small value can become large JSON."""

    __slots__ = ("bytes_left", "nodes_left")

    def __init__(self) -> None:
        self.nodes_left = OUTPUT_NODES_MAX
        self.bytes_left = OUTPUT_BYTES_MAX


def to_json(value: Any) -> Any:
    """Convert a value to JSON. Keywords and integers of more than 64 bits become text, and ratios become decimals.

    Raises:
        AleFault: the value contains a pair, a function, or a number that is infinite or NaN.
        AleLimitReached: the value is too big or nested too deeply.
    """
    return _convert(value, 0, _OutputBudget())


def _convert(value: Any, depth: int, output: _OutputBudget) -> Any:
    shape = type(value)
    output.nodes_left -= 1
    output.bytes_left -= 8
    if shape is str or shape is Keyword:
        output.bytes_left -= len(value)
    if output.nodes_left < 0 or output.bytes_left < 0:
        raise AleLimitReached("size")
    if shape is bool or value is None or shape is str:
        return value
    if shape is Keyword:
        return str(value)
    if shape is int:
        return value if value in _INT64 else str(value)
    if shape is float or shape is Fraction:
        return _decimal(value)
    if depth >= DEPTH_MAX - 1:
        raise AleLimitReached("depth")
    if shape is list or shape is AleList or shape is LazySequence:
        return [_convert(item, depth + 1, output) for item in value]
    if shape is dict:
        return {key: _convert(item, depth + 1, output) for key, item in _charge_keys(value, output)}
    if shape is Pair:
        raise AleFault("the script returns a pair, which JSON does not have; return its `first` or its `rest`")
    raise AleFault("the script returns a function, which JSON does not have")


def _charge_keys(value: dict[str, Any], output: _OutputBudget) -> Any:
    for key, item in value.items():
        output.bytes_left -= len(key)
        yield key, item


def _decimal(value: float | Fraction) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise AleFault(f"the script returns {number}, which JSON does not have")
    return number
