"""Where an operation stands: readable for people, compact in the log.

``pages/~3/fetch#2`` is the second ``fetch`` in round 3 of ``pages``. ``~3``: a round of a loop or an item of a map;
``&1``: an asyncio task, numbered by creation. In the log it is a list of indexes into the run's name registry, each
followed by minus its number if it has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.events import Path
from weft.errors import BadValue

ROUND = 0
TASK = 1
NAME_MAX = 200
NAMES_MAX = 1_000
"""More names than this are not registered but written out where they stand."""
_RESERVED = "~&!"


def key_of(scope: str, name: str, n: int) -> str:
    """The readable location of the n-th use of a name in a scope."""
    return scope + name if n == 1 else f"{scope}{name}#{n}"


def check_name(name: str) -> str:
    """Refuse a name that could be taken for another place."""
    if not name or len(name) > NAME_MAX or name[0] in _RESERVED or "/" in name or "#" in name or not name.isprintable():
        raise BadValue(
            f"{name[:60]!r} cannot name a place in a workflow.",
            hint="A name has 1 to 200 printable characters, no / or #, and does not begin with ~, & or !.",
            code="value.bad_name",
        )
    return name


def compact(key: str, names: Mapping[str, int], add: list[str]) -> Path:
    """The path of a location; names not registered yet are put into ``add``, in order, while there is room for them."""
    path: Path = []
    for segment in key.split("/"):
        mark = segment[0]
        if mark in "~&":
            path += (ROUND if mark == "~" else TASK, -1 - int(segment[1:]))
            continue
        name, _, number = segment.partition("#")
        path.append(registered(name, names, add))
        if number:
            path.append(-int(number))
    return path


def registered(name: str, names: Mapping[str, int], add: list[str]) -> int | str:
    """The number of a name, or itself, if the registry is full: made-up names must not fill the state."""
    index = names.get(name)
    if index is not None:
        return index
    if name in add:
        return len(names) + add.index(name)
    if len(names) + len(add) >= NAMES_MAX:
        return name
    add.append(name)
    return len(names) + len(add) - 1


def readable(path: Sequence[int | str], names: Sequence[str]) -> str:
    """The location of a path."""
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
