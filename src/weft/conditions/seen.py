"""Values for people: cut to a size that an event or a message can hold, however big, deep or cyclic they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

CHARS_MAX: Final = 200
PARTS_MAX: Final = 20
DEPTH_MAX: Final = 4
_PLAIN = frozenset({bool, int, float, type(None)})
_DIGITS_MAX = 10**100


def bounded(value: Any) -> Any:
    """The value as JSON, or the beginning of it: long text, long lists and deep parts end in "…"."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= CHARS_MAX else f"{value[:CHARS_MAX]}…"
    if kind in _PLAIN:
        return value if kind is not int or -_DIGITS_MAX < value < _DIGITS_MAX else "an integer of over 100 digits"
    return _Cut().cut(value, 0)


def look(bindings: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """What stands at each path, by its text; where one leads nowhere, what stands at its last good place."""
    found: dict[str, Any] = {}
    for path in paths:
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
    """A path as CEL writes it: `nodes["a-b"].output`."""
    text = ""
    for name in path:
        if name.isidentifier():
            text = f"{text}.{name}" if text else name
        else:
            text = f'{text}["{name}"]'
    return text


class _Cut:
    """Cuts one value; what it keeps is counted across all its parts."""

    def __init__(self) -> None:
        self.left = PARTS_MAX

    def cut(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._object(value, depth) if depth < DEPTH_MAX else "{…}"
        if isinstance(value, list | tuple):
            return self._list(value, depth) if depth < DEPTH_MAX else "[…]"
        if type(value) is str or type(value) in _PLAIN:
            return bounded(value)
        return f"<{type(value).__name__}>"

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, part in value.items():
            if self.left <= 0:
                kept["…"] = f"{len(value) - len(kept)} more"
                break
            self.left -= 1
            kept[bounded(str(name))] = self.cut(part, depth + 1)
        return kept

    def _list(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        kept: list[Any] = []
        for part in value:
            if self.left <= 0:
                kept.append(f"… {len(value) - len(kept)} more")
                break
            self.left -= 1
            kept.append(self.cut(part, depth + 1))
        return kept
