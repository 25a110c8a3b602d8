"""The functions of CEL: the standard ones, and its extensions for strings, numbers and optional values.

A function takes the frame and its arguments, a method its target first. `FUNCTIONS` and `METHODS` say how many
arguments each takes; the checker reads the same tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from weft.conditions.budget import Fault, Frame
from weft.conditions.cel import moments
from weft.conditions.cel.formatting import format_text, number_text
from weft.conditions.cel.operators import greater, less
from weft.conditions.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    TYPES,
    Optional,
    TypeName,
    duration_text,
    kind,
    timestamp_text,
)
from weft.conditions.patterns import matches

_ANY_NUMBER = 99


class Signature(NamedTuple):
    """A function and how many arguments it takes, not counting the target."""

    run: Callable[..., Any]
    least: int
    most: int


def _text(value: Any, what: str) -> str:
    if type(value) is str:
        return value
    raise Fault(f"`{what}` takes a string, not {kind(value)}")


def _whole(value: Any, what: str) -> int:
    if type(value) is int:
        return value
    raise Fault(f"`{what}` takes an int, not {kind(value)}")


def _number(value: Any, what: str) -> Any:
    if type(value) in (int, float):
        return value
    raise Fault(f"`{what}` takes a number, not {kind(value)}")


# Of anything


def _size(_frame: Frame, value: Any) -> int:
    if type(value) in (str, list) or isinstance(value, Mapping):
        return len(value)
    raise Fault(f"`size` takes a string, a list or a map, not {kind(value)}")


def _type(_frame: Frame, value: Any) -> TypeName:
    name = kind(value)
    return TYPES.get("null_type" if name == "null" else name, TYPES["map"])


def _int(_frame: Frame, value: Any) -> int:
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
    raise Fault(f"{_shown(value)} is no int")


def _double(_frame: Frame, value: Any) -> float:
    if type(value) in (int, float) or (type(value) is str and len(value) <= 400):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            pass
        else:
            if math.isfinite(number) and (type(value) is not str or "_" not in value):
                return number
    raise Fault(f"{_shown(value)} is no double")


def _string(_frame: Frame, value: Any) -> str:
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
    raise Fault(f"`string` does not take {kind(value)}")


def _bool(_frame: Frame, value: Any) -> bool:
    if type(value) is bool:
        return value
    if value in ("true", "True", "TRUE", "t", "1"):
        return True
    if value in ("false", "False", "FALSE", "f", "0"):
        return False
    raise Fault(f"{_shown(value)} is no bool")


def _shown(value: Any) -> str:
    return f'"{value[:40]}"' if type(value) is str else kind(value)


# Strings. Positions count characters; whatever is read or made is charged.


def _search(name: str, find: Callable[[str, str], bool]) -> Callable[..., bool]:
    def run(frame: Frame, text: Any, part: Any) -> bool:
        frame.charge(len(_text(text, name)) >> 4)
        return find(text, _text(part, name))

    return run


def _matches(frame: Frame, text: Any, pattern: Any) -> bool:
    return matches(frame, _text(text, "matches"), _text(pattern, "matches"))


def _changed(name: str, change: Callable[[str], str]) -> Callable[..., str]:
    def run(frame: Frame, text: Any) -> str:
        frame.charge(len(_text(text, name)))
        return change(text)

    return run


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(char) if char.isascii() else char for char in text)


def _char_at(_frame: Frame, text: Any, at: Any) -> str:
    if 0 <= _whole(at, "charAt") <= len(_text(text, "charAt")):
        return str(text[at : at + 1])
    raise Fault(f"the string has {len(text)} characters, there is no {at}")


def _index_of(frame: Frame, text: Any, part: Any, start: Any = 0) -> int:
    frame.charge(len(_text(text, "indexOf")) >> 2)
    if 0 <= _whole(start, "indexOf") <= len(text):
        return text.find(_text(part, "indexOf"), start)  # type: ignore[no-any-return]
    raise Fault(f"the string has {len(text)} characters, there is no {start}")


def _last_index_of(frame: Frame, text: Any, part: Any, start: Any = None) -> int:
    frame.charge(len(_text(text, "lastIndexOf")) >> 2)
    at = len(text) if start is None else _whole(start, "lastIndexOf")
    if 0 <= at <= len(text):
        return text.rfind(_text(part, "lastIndexOf"), 0, at + len(part))  # type: ignore[no-any-return]
    raise Fault(f"the string has {len(text)} characters, there is no {at}")


def _substring(frame: Frame, text: Any, start: Any, end: Any = None) -> str:
    frame.charge(len(_text(text, "substring")) >> 4)
    stop = len(text) if end is None else _whole(end, "substring")
    if 0 <= _whole(start, "substring") <= stop <= len(text):
        return str(text[start:stop])
    raise Fault(f"the string has {len(text)} characters, there is no part from {start} to {stop}")


def _replace(frame: Frame, text: Any, old: Any, new: Any, times: Any = -1) -> str:
    length, added = len(_text(text, "replace")), len(_text(new, "replace"))
    found = text.count(_text(old, "replace"))
    frame.charge((length + found * added) >> 4)
    return str(text.replace(old, new, _whole(times, "replace")))


def _split(frame: Frame, text: Any, separator: Any, times: Any = -1) -> list[str]:
    frame.charge(len(_text(text, "split")))
    most = _whole(times, "split")
    if most == 0:
        return []
    if not _text(separator, "split"):
        letters = list(text) or [""]
        return letters if most < 0 or most >= len(letters) else [*letters[: most - 1], "".join(letters[most - 1 :])]
    return text.split(separator, most - 1 if most > 0 else -1)  # type: ignore[no-any-return]


def _join(frame: Frame, parts: Any, separator: Any = "") -> str:
    if type(parts) is not list:
        raise Fault(f"`join` takes a list of strings, not {kind(parts)}")
    frame.charge(len(parts))
    total = sum(len(_text(part, "join")) for part in parts) + len(parts) * len(_text(separator, "join"))
    frame.charge(total >> 4)
    return str(separator.join(parts))


# Numbers


def _extreme(name: str, wins: Callable[[Frame, Any, Any], bool]) -> Callable[..., Any]:
    def run(frame: Frame, *values: Any) -> Any:
        numbers = values[0] if len(values) == 1 and type(values[0]) is list else values
        if not numbers:
            raise Fault(f"`{name}` of an empty list")
        frame.charge(len(numbers))
        best = _number(numbers[0], name)
        for number in numbers:
            if wins(frame, _number(number, name), best):
                best = number
        return best

    return run


def _numeric(name: str, change: Callable[[Any], Any]) -> Callable[..., Any]:
    def run(_frame: Frame, value: Any) -> Any:
        number = _number(value, name)
        try:
            return change(number)
        except (ValueError, OverflowError):
            raise Fault(f"`{name}` of {number} is no number") from None

    return run


def _round(value: float) -> float:
    """Halves away from zero."""
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _sign(value: float) -> float:
    return type(value)((value > 0) - (value < 0))


# Optional values


def _held(value: Any, what: str) -> Optional:
    if type(value) is Optional:
        return value
    raise Fault(f"`{what}` belongs to optional values like `a.?b`, not to {kind(value)}")


def _value(_frame: Frame, optional: Any) -> Any:
    if _held(optional, "value") is NONE:
        raise Fault("the optional value is missing")
    return optional.value


def _of_non_zero(_frame: Frame, value: Any) -> Optional:
    return Optional(value) if value or type(value) is timedelta else NONE


FUNCTIONS: dict[str, Signature] = {
    "size": Signature(_size, 1, 1),
    "type": Signature(_type, 1, 1),
    "dyn": Signature(lambda _frame, value: value, 1, 1),
    "int": Signature(_int, 1, 1),
    "double": Signature(_double, 1, 1),
    "string": Signature(_string, 1, 1),
    "bool": Signature(_bool, 1, 1),
    "timestamp": Signature(moments.timestamp, 1, 1),
    "duration": Signature(moments.duration, 1, 1),
    "matches": Signature(_matches, 2, 2),
    "math.greatest": Signature(_extreme("math.greatest", greater), 1, _ANY_NUMBER),
    "math.least": Signature(_extreme("math.least", less), 1, _ANY_NUMBER),
    "math.ceil": Signature(_numeric("math.ceil", lambda x: type(x)(math.ceil(x))), 1, 1),
    "math.floor": Signature(_numeric("math.floor", lambda x: type(x)(math.floor(x))), 1, 1),
    "math.round": Signature(_numeric("math.round", lambda x: type(x)(_round(x)) if type(x) is float else x), 1, 1),
    "math.trunc": Signature(_numeric("math.trunc", lambda x: type(x)(math.trunc(x))), 1, 1),
    "math.abs": Signature(_numeric("math.abs", abs), 1, 1),
    "math.sign": Signature(_numeric("math.sign", _sign), 1, 1),
    "math.sqrt": Signature(_numeric("math.sqrt", math.sqrt), 1, 1),
    "optional.of": Signature(lambda _frame, value: Optional(value), 1, 1),
    "optional.ofNonZeroValue": Signature(_of_non_zero, 1, 1),
    "optional.none": Signature(lambda _frame: NONE, 0, 0),
}

METHODS: dict[str, Signature] = {
    "size": Signature(_size, 0, 0),
    "contains": Signature(_search("contains", lambda text, part: part in text), 1, 1),
    "startsWith": Signature(_search("startsWith", str.startswith), 1, 1),
    "endsWith": Signature(_search("endsWith", str.endswith), 1, 1),
    "matches": Signature(_matches, 1, 1),
    "lowerAscii": Signature(_changed("lowerAscii", _ascii(str.lower)), 0, 0),
    "upperAscii": Signature(_changed("upperAscii", _ascii(str.upper)), 0, 0),
    "trim": Signature(_changed("trim", str.strip), 0, 0),
    "reverse": Signature(_changed("reverse", lambda text: text[::-1]), 0, 0),
    "charAt": Signature(_char_at, 1, 1),
    "indexOf": Signature(_index_of, 1, 2),
    "lastIndexOf": Signature(_last_index_of, 1, 2),
    "substring": Signature(_substring, 1, 2),
    "replace": Signature(_replace, 2, 3),
    "split": Signature(_split, 1, 2),
    "join": Signature(_join, 0, 1),
    "format": Signature(format_text, 1, 1),
    "hasValue": Signature(lambda _frame, held: _held(held, "hasValue") is not NONE, 0, 0),
    "value": Signature(_value, 0, 0),
    "or": Signature(lambda _f, held, other: _held(other, "or") if _held(held, "or") is NONE else held, 1, 1),
    "orValue": Signature(lambda _f, held, other: other if _held(held, "orValue") is NONE else held.value, 1, 1),
    **{name: Signature(getter, 0, 1) for name, getter in moments.GETTERS.items()},
}
