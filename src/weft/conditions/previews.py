"""Previews of values for events and messages, short however big, deep or cyclic the values are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from weft.conditions.paths import Path, path_text

SEEN_MAX: Final = 50
CHARS_MAX: Final = 200
PARTS_MAX: Final = 10
NESTED_PARTS_MAX: Final = 5
DEPTH_MAX: Final = 3
_SCALARS = frozenset({bool, int, float, type(None)})
_DIGITS_MAX = 10**100


def preview(value: Any, depth: int = 0) -> Any:
    """Return a short form of a value, as JSON.

    Long texts and lists end in "…"; large nested parts become their size.
    """
    kind = type(value)
    if kind is str:
        return value if len(value) <= CHARS_MAX else f"{value[:CHARS_MAX]}…"
    if kind in _SCALARS:
        return value if kind is not int or -_DIGITS_MAX < value < _DIGITS_MAX else "an integer of over 100 digits"
    if kind is list:
        if depth and (len(value) > NESTED_PARTS_MAX or depth == DEPTH_MAX):
            return f"[{len(value)} elements]"
        if len(value) <= PARTS_MAX:
            return [preview(part, depth + 1) for part in value]
        return [*(preview(part, depth + 1) for part in value[:PARTS_MAX]), f"… {len(value) - PARTS_MAX} more"]
    if isinstance(value, Mapping):
        if depth and (len(value) > NESTED_PARTS_MAX or depth == DEPTH_MAX):
            return f"{{{len(value)} fields}}"
        first = value.items() if len(value) <= PARTS_MAX else islice(value.items(), PARTS_MAX)
        fields = {preview(str(name)): preview(part, depth + 1) for name, part in first}
        if len(value) > PARTS_MAX:
            fields["…"] = f"{len(value) - PARTS_MAX} more"
        return fields
    return f"<{kind.__name__}>"


def preview_paths(bindings: Mapping[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """Return a preview of the value at each path, by the text of the path.

    If a path leads nowhere, the longest part of it that has a value stands for it.
    """
    previews: dict[str, Any] = {}
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
            previews[path_text(path[:depth])] = preview(value)
    return previews
