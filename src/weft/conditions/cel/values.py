"""CEL values that JSON does not have (timestamps, durations, types, optional values), and their conversion to JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from weft.conditions.budget import DEPTH_MAX, Evaluation, EvaluationFault

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
MISSING: Final = object()
_SCALARS = frozenset({str, bool, int, type(None)})
_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    list: "list",
    dict: "map",
    datetime: "timestamp",
    timedelta: "duration",
}


class TypeName:
    """A type as a value: the result of ``type(x)``, and the value of ``string`` or ``int``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


TYPES: Final = {name: TypeName(name) for name in (*_KINDS.values(), "null_type", "type", "optional_type")}


class Optional:
    """A value that may be missing: the result of ``a.?b``."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


NONE: Final = Optional(MISSING)


def cel_type(value: Any) -> str:
    """Return the CEL type of a value, for messages and ``type()``."""
    name = _KINDS.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Optional):
        return "optional_type"
    if isinstance(value, TypeName):
        return "type"
    return "map" if isinstance(value, Mapping) else type(value).__name__


def to_json(frame: Evaluation, value: Any, depth: int = 0) -> Any:
    """Convert a result to JSON. Timestamps and durations become text; other parts are not copied.

    Raises:
        EvaluationFault: JSON does not have such a value.
    """
    what = type(value)
    if what in _SCALARS:
        return value
    if what is float:
        if not math.isfinite(value):
            raise EvaluationFault("the result is not a finite number, and JSON has only finite ones")
        return value
    if depth > DEPTH_MAX:
        raise EvaluationFault(f"the result is nested deeper than {DEPTH_MAX} levels")
    if what is list:
        frame.charge(1 + len(value))
        parts = [to_json(frame, part, depth + 1) for part in value]
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if what is dict:
        return _object_to_json(frame, value, depth)
    if what is datetime:
        return timestamp_text(value)
    if what is timedelta:
        return duration_text(value)
    if what is Optional:
        raise EvaluationFault("the result is an optional value", hint="End the expression with `.orValue(…)`.")
    if what is TypeName:
        raise EvaluationFault(f"the result is the type `{value.name}`, which JSON does not have")
    if isinstance(value, Mapping):
        return _object_to_json(frame, dict(value), depth)
    raise EvaluationFault(f"the result is a {what.__name__}, which JSON does not have")


def _object_to_json(frame: Evaluation, value: dict[Any, Any], depth: int) -> dict[str, Any]:
    frame.charge(1 + len(value))
    changed = {}
    for key, part in value.items():
        if type(key) is not str:
            raise EvaluationFault(f"the result is a map with the key {key!r:.40}; in JSON keys are strings")
        new = to_json(frame, part, depth + 1)
        if new is not part:
            changed[key] = new
    return {**value, **changed} if changed else value


def timestamp_text(value: datetime) -> str:
    """Return a timestamp as RFC 3339, in UTC."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def duration_text(value: timedelta) -> str:
    """Return a duration as CEL and protobuf write it: seconds and an ``s``."""
    seconds = value / timedelta(seconds=1)
    return f"{int(seconds)}s" if seconds == int(seconds) else f"{seconds}s"
