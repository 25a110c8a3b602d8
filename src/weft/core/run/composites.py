"""Values that are put together from others: each part keeps its own marks. Pure.

A value comes as the log holds it: JSON, a reference to a blob, or JSON sealed because it looks like one of these.
Merges and writes put such values into larger ones, which are marked in their turn (``has``), so that a reference inside
is found again and what a user wrote is never taken for one. Nothing outside graph runs sees that mark: what leaves for
a task, a child or the result is opened first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.run.env import MissingInputs
from weft.core.values import is_ref, parse_ref, unseal

MARK = "$weft"
_MARKED = b'{"$weft":'
_SOMEWHERE = b'"$weft"'
_HAS = b'{"$weft":"has","v":%b}'

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

Blob = Callable[[str], bytes | None]


def is_plain(raw: bytes) -> bool:
    """Whether it is just JSON."""
    return memoryview(raw)[: len(_MARKED)] != _MARKED


def size_of(raw: bytes) -> int:
    """How many bytes of JSON a value of the log stands for, at least."""
    return len(memoryview(raw)) if is_plain(raw) or not is_ref(bytes(raw)) else parse_ref(bytes(raw)).size


def leaf(raw: bytes) -> Any:
    """A value as part of a larger one."""
    value = _decode(raw)
    return value if not is_plain(raw) or _SOMEWHERE not in bytes(raw) else {MARK: "lit", "v": value}


def composed(value: Any) -> Raw:
    """A value whose parts are leaves, as the log holds it."""
    raw = _encode(value)
    return Raw(_HAS % raw if _SOMEWHERE in raw and is_plain(raw) else raw)


def literal(value: Any) -> Any:
    """What a user wrote, as part of a larger value."""
    return {MARK: "lit", "v": value} if has_marks(value) else value


def fields(value: dict[str, Any]) -> Any:
    """An object of leaves that has a field named like the mark is not taken for a marked one."""
    return {MARK: "pairs", "v": list(value.items())} if MARK in value else value


def has_marks(value: Any) -> bool:
    """Whether a composed value must be opened before it is looked at."""
    return _SOMEWHERE in _encode(value)


def is_blob(value: Any) -> bool:
    """Whether a part of a composed value lies in a blob."""
    return isinstance(value, dict) and value.get(MARK) == "blob"


def without_mark(value: Any) -> Any:
    """The parts of a composed value, to be changed in place."""
    return value["v"] if isinstance(value, dict) and MARK in value else value


def with_mark(parts: Any) -> Any:
    """A composed value of parts of which some must be opened."""
    return {MARK: "has", "v": parts}


def open_raw(raw: bytes, blob: Blob) -> Any:
    """What a value of the log stands for. Raises MissingInputs."""
    return _decode(raw) if is_plain(raw) else opened(_decode(raw), blob)


def opened(value: Any, blob: Blob) -> Any:
    """What a composed value stands for. Raises MissingInputs for all that is missing at once."""
    missing: list[str] = []
    found = _open(value, blob, missing)
    if missing:
        raise MissingInputs(blobs=missing)
    return found


def _open(value: Any, blob: Blob, missing: list[str]) -> Any:
    if isinstance(value, list):
        return [_open(item, blob, missing) for item in value]
    if not isinstance(value, dict):
        return value
    match value.get(MARK):
        case None:
            return {key: _open(item, blob, missing) for key, item in value.items()}
        case "lit":
            return value["v"]
        case "has":
            return _open(value["v"], blob, missing)
        case "pairs":
            return {key: _open(item, blob, missing) for key, item in value["v"]}
    digest = parse_ref(_encode(value)).digest
    content = blob(digest)
    if content is None:
        missing.append(digest)
        return None
    return _decode(unseal(content))


def follow(value: Any, words: Sequence[str]) -> Any:
    """The part of a composed value at a path; nothing lies behind a reference."""
    for word in words:
        inner, own = _inside(value)
        value = inner.get(word) if isinstance(inner, dict) else None
        if own:
            value = literal(value)
    return value


def items(value: Any) -> dict[str, Any]:
    """The fields of a composed object, each a leaf; nothing if it is none."""
    inner, own = _inside(value)
    if not isinstance(inner, dict):
        return {}
    return {key: literal(item) for key, item in inner.items()} if own else inner


def _inside(value: Any) -> tuple[Any, bool]:
    """A composed value without its outer mark, and whether all in it is the user's own."""
    mark = value.get(MARK) if isinstance(value, dict) else None
    if mark == "has":
        return _inside(value["v"])
    if mark == "lit":
        return value["v"], True
    if mark == "pairs":
        return dict(value["v"]), False
    return (None, False) if mark == "blob" else (value, False)


def mark_on_path(data: Any, path: Sequence[str]) -> int:
    """How many words of a path lead up to a marked value, behind which nothing can be written in place; 0: none."""
    for depth, word in enumerate(path[:-1], 1):
        data = data.get(word) if isinstance(data, dict) else None
        if isinstance(data, dict) and MARK in data:
            return depth
    return 0
