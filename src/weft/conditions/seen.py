"""Shorten values for events and messages, however big, deep or cyclic they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

SEEN_MAX: Final = 50
CHARS_MAX: Final = 200
PARTS_MAX: Final = 10
SMALL_MAX: Final = 5
DEPTH_MAX: Final = 3
_PLAIN = frozenset({bool, int, float, type(None)})
_DIGITS_MAX = 10**100


def bounded(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON, shortened: long texts and lists end in "…", big parts are only counted."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= CHARS_MAX else f"{value[:CHARS_MAX]}…"
    if kind in _PLAIN:
        return value if kind is not int or -_DIGITS_MAX < value < _DIGITS_MAX else "an integer of over 100 digits"
    if kind is list:
        if depth and (len(value) > SMALL_MAX or depth == DEPTH_MAX):
            return f"[{len(value)} elements]"
        if len(value) <= PARTS_MAX:
            return [bounded(part, depth + 1) for part in value]
        return [*(bounded(part, depth + 1) for part in value[:PARTS_MAX]), f"… {len(value) - PARTS_MAX} more"]
    if isinstance(value, Mapping):
        if depth and (len(value) > SMALL_MAX or depth == DEPTH_MAX):
            return f"{{{len(value)} fields}}"
        first = value.items() if len(value) <= PARTS_MAX else islice(value.items(), PARTS_MAX)
        kept = {bounded(str(name)): bounded(part, depth + 1) for name, part in first}
        if len(value) > PARTS_MAX:
            kept["…"] = f"{len(value) - PARTS_MAX} more"
        return kept
    return f"<{kind.__name__}>"


def look(bindings: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Return the value at each path, keyed by the path's text. If a path has no value, return the last value on it."""
    found: dict[str, Any] = {}
    for path in islice(paths, SEEN_MAX):
        value: Any = bindings
        depth = 0
        try:
            for name in path:
                value = value[name]
                depth += 1
        except (KeyError, TypeError, IndexError):
            pass
        if depth:
            found[path_text(path[:depth])] = bounded(value)
    return found


def path_text(path: Iterable[str]) -> str:
    """Return a path as CEL writes it: `nodes["a-b"].output`."""
    text = ""
    for name in path:
        text += field_text(name) if text else name
    return text


def field_text(name: str) -> str:
    """Return a field as CEL writes it after a value: `.output`, `["a-b"]`."""
    return f".{name}" if name.isidentifier() else f'["{name}"]'
