"""The functions of CEL: the standard ones, and the extensions for strings, numbers and optional values.

A function takes the evaluation and its arguments; a method takes its target first. ``FUNCTIONS`` and ``METHODS`` say
how many arguments each takes; ``reads.py`` checks calls against them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from weft.conditions.budget import Evaluation, EvaluationFault
from weft.conditions.cel import times
from weft.conditions.cel.format import format_text, number_text
from weft.conditions.cel.operators import greater, less
from weft.conditions.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    TYPES,
    Optional,
    TypeName,
    cel_type,
    duration_text,
    timestamp_text,
)
from weft.conditions.patterns import matches

_UNLIMITED = 99


class CelFunction(NamedTuple):
    """A function and how many arguments it takes, not counting the target."""

    run: Callable[..., Any]
    arguments_min: int
    arguments_max: int


def _cel_text(value: Any, what: str) -> str:
    if type(value) is str:
        return value
    raise EvaluationFault(f"`{what}` takes a string, not {cel_type(value)}")


def _integer(value: Any, what: str) -> int:
    if type(value) is int:
        return value
    raise EvaluationFault(f"`{what}` takes an int, not {cel_type(value)}")


def _cel_number(value: Any, what: str) -> Any:
    if type(value) in (int, float):
        return value
    raise EvaluationFault(f"`{what}` takes a number, not {cel_type(value)}")


# Values of any type


def _size(_frame: Evaluation, value: Any) -> int:
    if type(value) in (str, list) or isinstance(value, Mapping):
        return len(value)
    raise EvaluationFault(f"`size` takes a string, a list or a map, not {cel_type(value)}")


def _type(_frame: Evaluation, value: Any) -> TypeName:
    name = cel_type(value)
    return TYPES.get("null_type" if name == "null" else name, TYPES["map"])


def _int(_frame: Evaluation, value: Any) -> int:
    match value:
        case int():
            return int(value)
        case float() if INT_MIN <= value < INT_MAX:
            return int(value)
        case str() if len(value) <= 20 and (number := value.removeprefix("-")).isascii() and number.isdigit():
            if INT_MIN <= int(value) <= INT_MAX:
                return int(value)
        case datetime():
            return math.floor(value.timestamp())
    raise EvaluationFault(f"{_describe_value(value)} is not an int")


def _double(_frame: Evaluation, value: Any) -> float:
    if type(value) in (int, float) or (type(value) is str and len(value) <= 400):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            pass
        else:
            if math.isfinite(number) and (type(value) is not str or "_" not in value):
                return number
    raise EvaluationFault(f"{_describe_value(value)} is not a double")


def _string(_frame: Evaluation, value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_text(value)
        case datetime():
            return timestamp_text(value)
        case timedelta():
            return duration_text(value)
    raise EvaluationFault(f"`string` does not take {cel_type(value)}")


def _bool(_frame: Evaluation, value: Any) -> bool:
    if type(value) is bool:
        return value
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    raise EvaluationFault(f"{_describe_value(value)} is not a bool")


def _describe_value(value: Any) -> str:
    return f'"{value[:40]}"' if type(value) is str else cel_type(value)


# Strings. Positions count characters. Functions charge for the text that they read or make.


def _search(name: str, find: Callable[[str, str], bool]) -> Callable[..., bool]:
    def run(frame: Evaluation, text: Any, part: Any) -> bool:
        frame.charge(len(_cel_text(text, name)) >> 4)
        return find(text, _cel_text(part, name))

    return run


def _matches(frame: Evaluation, text: Any, pattern: Any) -> bool:
    return matches(frame, _cel_text(text, "matches"), _cel_text(pattern, "matches"))


def _text_change(name: str, change: Callable[[str], str]) -> Callable[..., str]:
    def run(frame: Evaluation, text: Any) -> str:
        frame.charge(len(_cel_text(text, name)))
        return change(text)

    return run


def _ascii_only(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(char) if char.isascii() else char for char in text)


def _char_at(_frame: Evaluation, text: Any, at: Any) -> str:
    if 0 <= _integer(at, "charAt") <= len(_cel_text(text, "charAt")):
        return str(text[at : at + 1])
    raise EvaluationFault(f"the string has {len(text)} characters; there is no position {at}")


def _index_of(frame: Evaluation, text: Any, part: Any, start: Any = 0) -> int:
    frame.charge(len(_cel_text(text, "indexOf")) >> 2)
    if 0 <= _integer(start, "indexOf") <= len(text):
        return text.find(_cel_text(part, "indexOf"), start)  # type: ignore[no-any-return]
    raise EvaluationFault(f"the string has {len(text)} characters; there is no position {start}")


def _last_index_of(frame: Evaluation, text: Any, part: Any, start: Any = None) -> int:
    frame.charge(len(_cel_text(text, "lastIndexOf")) >> 2)
    at = len(text) if start is None else _integer(start, "lastIndexOf")
    if 0 <= at <= len(text):
        return text.rfind(_cel_text(part, "lastIndexOf"), 0, at + len(part))  # type: ignore[no-any-return]
    raise EvaluationFault(f"the string has {len(text)} characters; there is no position {at}")


def _substring(frame: Evaluation, text: Any, start: Any, end: Any = None) -> str:
    frame.charge(len(_cel_text(text, "substring")) >> 4)
    stop = len(text) if end is None else _integer(end, "substring")
    if 0 <= _integer(start, "substring") <= stop <= len(text):
        return str(text[start:stop])
    raise EvaluationFault(f"the string has {len(text)} characters; there is no part from {start} to {stop}")


def _replace(frame: Evaluation, text: Any, old: Any, new: Any, times: Any = -1) -> str:
    length, added = len(_cel_text(text, "replace")), len(_cel_text(new, "replace"))
    count = text.count(_cel_text(old, "replace"))
    frame.charge((length + count * added) >> 4)
    return str(text.replace(old, new, _integer(times, "replace")))


def _split(frame: Evaluation, text: Any, separator: Any, times: Any = -1) -> list[str]:
    frame.charge(len(_cel_text(text, "split")))
    most = _integer(times, "split")
    if most == 0:
        return []
    if not _cel_text(separator, "split"):
        letters = list(text) or [""]
        return letters if most < 0 or most >= len(letters) else [*letters[: most - 1], "".join(letters[most - 1 :])]
    return text.split(separator, most - 1 if most > 0 else -1)  # type: ignore[no-any-return]


def _join(frame: Evaluation, parts: Any, separator: Any = "") -> str:
    if type(parts) is not list:
        raise EvaluationFault(f"`join` takes a list of strings, not {cel_type(parts)}")
    frame.charge(len(parts))
    total = sum(len(_cel_text(part, "join")) for part in parts) + len(parts) * len(_cel_text(separator, "join"))
    frame.charge(total >> 4)
    return str(separator.join(parts))


# Numbers


def _extreme(name: str, wins: Callable[[Evaluation, Any, Any], bool]) -> Callable[..., Any]:
    def run(frame: Evaluation, *values: Any) -> Any:
        numbers = values[0] if len(values) == 1 and type(values[0]) is list else values
        if not numbers:
            raise EvaluationFault(f"`{name}` takes at least one number")
        frame.charge(len(numbers))
        best = _cel_number(numbers[0], name)
        for number in numbers:
            if wins(frame, _cel_number(number, name), best):
                best = number
        return best

    return run


def _numeric(name: str, change: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(_frame: Evaluation, value: Any) -> Any:
        number = _cel_number(value, name)
        try:
            return change(number)
        except (ValueError, OverflowError):
            raise EvaluationFault(f"`{name}` of {number} is not a number") from None

    return run


def _round(value: float) -> float:
    """Round to the nearest integer, halves away from zero."""
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _sign(value: float) -> float:
    return type(value)((value > 0) - (value < 0))


# Optional values


def _optional(value: Any, what: str) -> Optional:
    if type(value) is Optional:
        return value
    raise EvaluationFault(f"`{what}` takes an optional value like `a.?b`, not {cel_type(value)}")


def _value(_frame: Evaluation, optional: Any) -> Any:
    if _optional(optional, "value") is NONE:
        raise EvaluationFault("the optional value is missing")
    return optional.value


def _of_non_zero(_frame: Evaluation, value: Any) -> Optional:
    return Optional(value) if value or type(value) is timedelta else NONE


FUNCTIONS: dict[str, CelFunction] = {
    "size": CelFunction(_size, 1, 1),
    "type": CelFunction(_type, 1, 1),
    "dyn": CelFunction(lambda _frame, value: value, 1, 1),
    "int": CelFunction(_int, 1, 1),
    "double": CelFunction(_double, 1, 1),
    "string": CelFunction(_string, 1, 1),
    "bool": CelFunction(_bool, 1, 1),
    "timestamp": CelFunction(times.timestamp, 1, 1),
    "duration": CelFunction(times.duration, 1, 1),
    "matches": CelFunction(_matches, 2, 2),
    "math.greatest": CelFunction(_extreme("math.greatest", greater), 1, _UNLIMITED),
    "math.least": CelFunction(_extreme("math.least", less), 1, _UNLIMITED),
    "math.ceil": CelFunction(_numeric("math.ceil", lambda x: type(x)(math.ceil(x))), 1, 1),
    "math.floor": CelFunction(_numeric("math.floor", lambda x: type(x)(math.floor(x))), 1, 1),
    "math.round": CelFunction(_numeric("math.round", lambda x: type(x)(_round(x)) if type(x) is float else x), 1, 1),
    "math.trunc": CelFunction(_numeric("math.trunc", lambda x: type(x)(math.trunc(x))), 1, 1),
    "math.abs": CelFunction(_numeric("math.abs", abs), 1, 1),
    "math.sign": CelFunction(_numeric("math.sign", _sign), 1, 1),
    "math.sqrt": CelFunction(_numeric("math.sqrt", math.sqrt), 1, 1),
    "optional.of": CelFunction(lambda _frame, value: Optional(value), 1, 1),
    "optional.ofNonZeroValue": CelFunction(_of_non_zero, 1, 1),
    "optional.none": CelFunction(lambda _frame: NONE, 0, 0),
}

METHODS: dict[str, CelFunction] = {
    "size": CelFunction(_size, 0, 0),
    "contains": CelFunction(_search("contains", lambda text, part: part in text), 1, 1),
    "startsWith": CelFunction(_search("startsWith", str.startswith), 1, 1),
    "endsWith": CelFunction(_search("endsWith", str.endswith), 1, 1),
    "matches": CelFunction(_matches, 1, 1),
    "lowerAscii": CelFunction(_text_change("lowerAscii", _ascii_only(str.lower)), 0, 0),
    "upperAscii": CelFunction(_text_change("upperAscii", _ascii_only(str.upper)), 0, 0),
    "trim": CelFunction(_text_change("trim", str.strip), 0, 0),
    "reverse": CelFunction(_text_change("reverse", lambda text: text[::-1]), 0, 0),
    "charAt": CelFunction(_char_at, 1, 1),
    "indexOf": CelFunction(_index_of, 1, 2),
    "lastIndexOf": CelFunction(_last_index_of, 1, 2),
    "substring": CelFunction(_substring, 1, 2),
    "replace": CelFunction(_replace, 2, 3),
    "split": CelFunction(_split, 1, 2),
    "join": CelFunction(_join, 0, 1),
    "format": CelFunction(format_text, 1, 1),
    "hasValue": CelFunction(lambda _frame, held: _optional(held, "hasValue") is not NONE, 0, 0),
    "value": CelFunction(_value, 0, 0),
    "or": CelFunction(lambda _f, held, other: _optional(other, "or") if _optional(held, "or") is NONE else held, 1, 1),
    "orValue": CelFunction(lambda _f, held, other: other if _optional(held, "orValue") is NONE else held.value, 1, 1),
    **{name: CelFunction(getter, 0, 1) for name, getter in times.GETTERS.items()},
}
