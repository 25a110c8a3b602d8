"""Locations of operations in a code run, as readable text and as compact paths in the log. Pure.

``pages/~3/fetch#2`` is the second ``fetch`` in round 3 of ``pages``. ``~3`` is a round of a loop or an item of a map,
and ``&1`` is an asyncio task, numbered by creation. The log stores a location as a list of indexes into the run's name
registry, each followed by its negated number, if any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.events import Path
from weft.errors import BadValue

ROUND = 0
TASK = 1
NAME_MAX = 200
NAMES_MAX = 1_000
"""The size of the name registry. Further names are written out in each location."""
_RESERVED = "~&!"


def location_key(scope: str, name: str, n: int) -> str:
    """Return the readable location of the n-th use of a name in a scope."""
    return scope + name if n == 1 else f"{scope}{name}#{n}"


def check_name(name: str) -> str:
    """Return the name if it is valid in a location. Raises BadValue."""
    if not name or len(name) > NAME_MAX or name[0] in _RESERVED or "/" in name or "#" in name or not name.isprintable():
        raise BadValue(
            f"{name[:60]!r} is not a valid name.",
            hint="Use 1 to 200 printable characters without / and #, and do not begin with ~, & or !.",
            code="value.bad_name",
        )
    return name


def compact_path(key: str, names: Mapping[str, int], add: list[str]) -> Path:
    """Return the path of a location. New names are appended to ``add`` until the registry is full."""
    path: Path = []
    for segment in key.split("/"):
        mark = segment[0]
        if mark in "~&":
            path += (ROUND if mark == "~" else TASK, -1 - int(segment[1:]))
            continue
        name, _, number = segment.partition("#")
        path.append(name_index(name, names, add))
        if number:
            path.append(-int(number))
    return path


def name_index(name: str, names: Mapping[str, int], add: list[str]) -> int | str:
    """Return the index of a name, or the name if the registry is full.

    The limit keeps generated names from filling the state.
    """
    index = names.get(name)
    if index is not None:
        return index
    if name in add:
        return len(names) + add.index(name)
    if len(names) + len(add) >= NAMES_MAX:
        return name
    add.append(name)
    return len(names) + len(add) - 1


def readable_path(path: Sequence[int | str], names: Sequence[str]) -> str:
    """Return the readable location of a path."""
    if path and type(first := path[0]) is int and first > TASK:  # most paths are a name, or a name and its number
        if len(path) == 1:
            return names[first]
        if len(path) == 2 and type(second := path[1]) is int and second < 0:
            return f"{names[first]}#{-second}"
    parts: list[str] = []
    for part in path:
        if isinstance(part, str):
            parts.append(part)
        elif part >= 0:
            parts.append(names[part])
        elif parts[-1] == "~" or parts[-1] == "&":
            parts[-1] += str(-1 - part)
        else:
            parts[-1] += f"#{-part}"
    return "/".join(parts)
