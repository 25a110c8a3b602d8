"""Rows, their fields, and the kinds and the order of values. Pure.

The kinds are those of JSON: null, boolean, number, text, array and object. Values of different kinds are never equal:
``true`` is not 1, and "1" is not 1. Numbers are equal by value: 1 is 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeGuard

from weft.pipelines.faults import StepFault
from weft.pipelines.limits import ROWS_MAX

Row = dict[str, Any]
Get = Callable[[Row], Any]

MISSING: Final = type("Missing", (), {"__repr__": lambda _: "MISSING"})()
"""The value of a field that a row does not have."""

NUMBERS: Final = frozenset({int, float})
_KINDS: Final = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "text",
    list: "array",
    dict: "object",
}
_OWN_KEYS: Final = frozenset({str, int})
"""The types of values that are their own keys."""
_RANKS: Final = {bool: 0, int: 1, float: 1, str: 2}


def kind(value: Any) -> str:
    """Return the kind of a JSON value."""
    return _KINDS[type(value)]


def named_kind(value: Any) -> str:
    """Return the kind of a JSON value with its article, for messages."""
    name = kind(value)
    return name if name in ("null", "text") else f"an {name}" if name in ("array", "object") else f"a {name}"


def check_rows(data: Any, what: str = "the data") -> list[Row]:
    """Return the data as rows.

    Raises:
        StepFault: it is not an array of objects, or has too many.
    """
    if type(data) is not list:
        hint = "Take the rows out of it first, for example with jq_transform." if type(data) is dict else ""
        raise StepFault("not_rows", f"{what} is {named_kind(data)}, not an array of objects.", hint)
    if not set(map(type, data)) <= {dict}:
        index = next(index for index, row in enumerate(data) if type(row) is not dict)
        raise StepFault("not_rows", f"row {index} of {what} is {named_kind(data[index])}, not an object.")
    check_row_count(len(data), what)
    return data


def check_row_count(count: int, what: str = "the data") -> None:
    """Raise StepFault if there are too many rows."""
    if count > ROWS_MAX:
        raise StepFault("too_large", f"{what} has {count:,} rows; the limit is {ROWS_MAX:,}.", "Filter or group first.")


def field_reader(field: str) -> Get:
    """Return a function that reads a field of a row, or MISSING. A key wins over a path with dots."""
    if "." not in field:
        return lambda row: row.get(field, MISSING)
    path = field.split(".")

    def read(row: Row) -> Any:
        value: Any = row
        if field in row:
            return row[field]
        for name in path:
            if type(value) is not dict or name not in value:
                return MISSING
            value = value[name]
        return value

    return read


def read_column(data: Any, field: str, what: str = "the data") -> tuple[list[Row], list[Any]]:
    """Return the data as rows, and the values of a field of theirs, MISSING where a row does not have it.

    Raises:
        StepFault: it is not an array of objects, or has too many.
    """
    if type(data) is list:
        with suppress(KeyError, TypeError):
            values = list(map(itemgetter(field), data))  # only an object has values by name
            check_row_count(len(data), what)
            return data, values
    rows = check_rows(data, what)
    return rows, field_values(rows, field)


def field_values(rows: Sequence[Row], field: str) -> list[Any]:
    """Return the values of a field, MISSING where a row does not have it."""
    with suppress(KeyError):
        return list(map(itemgetter(field), rows))
    if "." not in field:
        return [row.get(field, MISSING) for row in rows]
    return list(map(field_reader(field), rows))


def is_absent(value: Any) -> bool:
    """Return whether a value is null, or missing."""
    return value is None or value is MISSING


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is a number. A boolean is not."""
    return type(value) in NUMBERS


def equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, kinds included."""
    if type(one) in NUMBERS and type(other) in NUMBERS:
        return bool(one == other)
    if type(one) is not type(other):
        return False
    if type(one) is list:
        return len(one) == len(other) and all(map(equal, one, other))
    if type(one) is dict:
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    return bool(one == other)


def order_key(value: Any) -> tuple[int, Any]:
    """Return the place of a value in the order of booleans, numbers, texts.

    Raises:
        StepFault: the value is an array or an object, which have no order.
    """
    rank = _RANKS.get(type(value))
    if rank is None:
        raise StepFault("bad_value", f"{named_kind(value)} has no order.")
    return rank, value


def group_key(value: Any) -> Hashable:
    """Return what identifies a value as a key: equal values have equal keys, and true is not 1.

    Raises:
        StepFault: the value is an array or an object.
    """
    if type(value) is bool:
        return (value,)
    if type(value) is list or type(value) is dict:
        raise StepFault("bad_value", f"{named_kind(value)} cannot be a key.")
    return None if value is MISSING else value


def read_keys(data: Any, names: Sequence[str], what: str = "the data") -> tuple[list[Row], list[Hashable]]:
    """Return the data as rows, and the key of each row: that of its field, or of all its fields.

    Raises:
        StepFault: it is not an array of objects, or a value is an array or an object.
    """
    rows, first = read_column(data, names[0], what)
    if len(names) == 1 and set(map(type, first)) <= _OWN_KEYS:
        return rows, first
    read = [first, *(field_values(rows, name) for name in names[1:])]
    parts = [_column_keys(name, values) for name, values in zip(names, read, strict=True)]
    return rows, parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def key_value(key: Hashable) -> Any:
    """Return the value that has this key; null if it is missing."""
    return key[0] if type(key) is tuple else key


def _column_keys(name: str, values: Sequence[Any]) -> list[Hashable]:
    try:
        return list(map(group_key, values))
    except StepFault as fault:
        index = next(index for index, value in enumerate(values) if type(value) in (list, dict))
        raise StepFault(fault.code, f"{name} of row {index}: {fault.message}") from None


def field_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of all fields, in the order in which they first appear."""
    if rows and set().union(*rows) <= rows[0].keys():
        return list(rows[0])
    return list(dict.fromkeys(chain.from_iterable(rows)))
