"""The values of Ale: JSON values as in Python, and keywords, ratios and functions.

Vectors are Python lists. Objects are dicts with text keys (`:name` and "name" are the same key). Neither is ever
changed. Lists, pairs and the results of `map` and the like have types of their own: a list is not a vector, and grows
at its front. Null is the empty list. Only `false` is false.
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
    """`:name`. Equal, as a key, to the text without its colon."""

    __slots__ = ()


class Listed(tuple[Any, ...]):
    """`'(1 2)`: a list, never empty, because the empty one is null."""

    __slots__ = ()


class Lazy(tuple[Any, ...]):
    """The result of `map`, `filter`, `take`, `drop`, `concat` and `range`.

    In Ale these are lazy, and comparing or printing one is useless. Here they are made at once and can be outputs, but
    comparing or printing one is an error.
    """

    __slots__ = ()


class Pair(tuple[Any, Any]):
    """A pair: `(cons :a 1)`, or an entry of an object. `first` gives its key, `rest` its value."""

    __slots__ = ()


def listed(values: Iterable[Any]) -> Listed | None:
    """Make a list."""
    return Listed(values) or None


class Procedure:
    """A function of the language: `run(meter, *arguments)`."""

    __slots__ = ("most", "name", "needs", "run")

    def __init__(self, name: str, run: Callable[..., Any], needs: int, most: int | None) -> None:
        self.name = name
        self.run = run
        self.needs = needs
        self.most = most

    def misfit(self, given: int) -> str:
        """Return what is wrong with that number of arguments, or an empty text."""
        if given >= self.needs and (self.most is None or given <= self.most):
            return ""
        wanted = f"at least {self.needs}" if self.most is None else f"{self.needs} to {self.most}"
        if self.needs == self.most:
            wanted = str(self.needs)
        return f"`{self.name}` takes {wanted} argument{'s' * (wanted != '1')}, not {given}"


class FunctionShape:
    """What the compiler knows about a function. There is one for each `lambda` in the text."""

    __slots__ = ("body", "cost", "height", "parameters", "rest", "slots")

    def __init__(self, body: Callable[[list[Any]], Any], parameters: int, *, rest: bool) -> None:
        self.body = body
        self.parameters = parameters
        self.rest = rest  # the last parameter takes all remaining arguments
        self.slots = 0  # more slots, for the names that the body binds
        self.cost = 1  # steps
        self.height = 1  # Python frames


class Closure:
    """A function of the script: its shape, and the frame it was made in."""

    __slots__ = ("frame", "shape")

    def __init__(self, shape: FunctionShape, frame: list[Any] | None) -> None:
        self.shape = shape
        self.frame = frame


def kind(value: Any) -> str:
    """Return what messages call a value."""
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a string", Keyword: "a keyword", list: "a sequence", dict: "an object"}
    names |= {Listed: "a sequence", Lazy: "a sequence", Pair: "a pair"}
    if type(value) in names:
        return names[type(value)]
    return "a function" if type(value) in (Procedure, Closure) else "a number"


def same(meter: Meter, one: Any, other: Any) -> bool:
    """Compare structurally, strict about types: 5 is not 5.0."""
    pairs = [(one, other)]
    while pairs:
        meter.charge(1)
        a, b = pairs.pop()
        if type(a) is Lazy or type(b) is Lazy:
            raise _unmade("compared")
        if type(a) is not type(b):
            return False
        if type(a) in (list, Listed, Pair):
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


def _unmade(what: str) -> AleFault:
    return AleFault(f"a lazy sequence cannot be {what}; make it a vector first: (seq->vector …)")


def text(meter: Meter, value: Any) -> str:
    """Return the value as `str` shows it: strings without quotes, null as nothing."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    return _printed(meter, value, 0)


def _printed(meter: Meter, value: Any, depth: int) -> str:
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
    if shape is Lazy:
        raise _unmade("printed")
    if shape not in _BRACKETS:
        return "function"
    if depth >= _PRINT_DEPTH_MAX:
        raise AleLimitReached("depth")
    if shape is Pair:
        parts = [_printed(meter, value[0], depth + 1), ".", _printed(meter, value[1], depth + 1)]
    elif shape is not dict:
        parts = [_printed(meter, item, depth + 1) for item in value]
    else:
        parts = [f":{key} {_printed(meter, item, depth + 1)}" for key, item in value.items()]
    whole = " ".join(parts)
    meter.take(len(whole) * 4)
    opening, closing = _BRACKETS[shape]
    return f"{opening}{whole}{closing}"


_BRACKETS: Final[dict[type, tuple[str, str]]] = {
    list: ("[", "]"),
    dict: ("{", "}"),
    Listed: ("(", ")"),
    Pair: ("(", ")"),
}


class _Output:
    """The size and depth of the output. Values may share parts, so a small value can be large as JSON."""

    __slots__ = ("bytes_left", "nodes_left")

    def __init__(self) -> None:
        self.nodes_left = OUTPUT_NODES_MAX
        self.bytes_left = OUTPUT_BYTES_MAX


def to_json(value: Any) -> Any:
    """Return the value as JSON: keywords as text, ratios as decimals, integers beyond 64 bits as text.

    Raises:
        AleFault: a function, or a number that is infinite or NaN.
        AleLimitReached: too big or too deep.
    """
    return _written(value, 0, _Output())


def _written(value: Any, depth: int, output: _Output) -> Any:
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
    if shape is list or shape is Listed or shape is Lazy:
        return [_written(item, depth + 1, output) for item in value]
    if shape is dict:
        return {key: _written(item, depth + 1, output) for key, item in _counted(value, output)}
    if shape is Pair:
        raise AleFault("it returns a pair, which JSON does not have; take its first or its rest")
    raise AleFault("it returns a function, which JSON does not have")


def _counted(value: dict[str, Any], output: _Output) -> Any:
    for key, item in value.items():
        output.bytes_left -= len(key)
        yield key, item


def _decimal(value: float | Fraction) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise AleFault(f"it returns {number}, which JSON does not have")
    return number
