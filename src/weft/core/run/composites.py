"""Values composed of stored values, whose parts may be references to blobs. Pure.

The log stores a value as JSON, as a reference to a blob, or as JSON that is sealed because it looks like a reference.
Merges and writes in graph runs put such values into larger ones. The larger value has a mark of its own (``has``), so
that references inside it are found, and a user's own JSON is never mistaken for a reference. Values are opened before
they become the input of a task or child, or the result.
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
_MARK_BYTES = b'"$weft"'
_COMPOSED = b'{"$weft":"has","v":%b}'

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

Blob = Callable[[str], bytes | None]


def is_unmarked(raw: bytes) -> bool:
    """Return whether a stored value is plain JSON, without a mark."""
    return memoryview(raw)[: len(_MARKED)] != _MARKED


def size_of(raw: bytes) -> int:
    """Return the size of a stored value after it is opened, in bytes of JSON. Parts in blobs are not counted."""
    return len(memoryview(raw)) if is_unmarked(raw) or not is_ref(bytes(raw)) else parse_ref(bytes(raw)).size


def leaf(raw: bytes) -> Any:
    """Convert a stored value to a part of a larger value."""
    value = _decode(raw)
    return value if not is_unmarked(raw) or _MARK_BYTES not in bytes(raw) else {MARK: "lit", "v": value}


def compose(value: Any) -> Raw:
    """Encode a value composed of parts, as the log stores it."""
    raw = _encode(value)
    return Raw(_COMPOSED % raw if _MARK_BYTES in raw and is_unmarked(raw) else raw)


def literal(value: Any) -> Any:
    """Convert a user's value to a part of a larger value, marked if it could be mistaken for a reference."""
    return {MARK: "lit", "v": value} if has_marks(value) else value


def escape_fields(value: dict[str, Any]) -> Any:
    """Convert an object of parts, so that a field with the name of the mark is not mistaken for a mark."""
    return {MARK: "pairs", "v": list(value.items())} if MARK in value else value


def has_marks(value: Any) -> bool:
    """Return whether a composed value must be opened before it is read."""
    return _MARK_BYTES in _encode(value)


def is_blob(value: Any) -> bool:
    """Return whether a part of a composed value is stored in a blob."""
    return isinstance(value, dict) and value.get(MARK) == "blob"


def without_mark(value: Any) -> Any:
    """Return the parts of a composed value, to be changed in place."""
    return value["v"] if isinstance(value, dict) and MARK in value else value


def with_mark(parts: Any) -> Any:
    """Compose a value from parts, some of which must be opened."""
    return {MARK: "has", "v": parts}


def open_raw(raw: bytes, blob: Blob) -> Any:
    """Open a stored value. Raises MissingInputs."""
    return _decode(raw) if is_unmarked(raw) else open_parts(_decode(raw), blob)


def open_parts(value: Any, blob: Blob) -> Any:
    """Open a composed value. Raises MissingInputs once, with all missing blobs."""
    missing: list[str] = []
    result = _open_parts_noting_missing(value, blob, missing)
    if missing:
        raise MissingInputs(blobs=missing)
    return result


def _open_parts_noting_missing(value: Any, blob: Blob, missing: list[str]) -> Any:
    if isinstance(value, list):
        return [_open_parts_noting_missing(item, blob, missing) for item in value]
    if not isinstance(value, dict):
        return value
    match value.get(MARK):
        case None:
            return {key: _open_parts_noting_missing(item, blob, missing) for key, item in value.items()}
        case "lit":
            return value["v"]
        case "has":
            return _open_parts_noting_missing(value["v"], blob, missing)
        case "pairs":
            return {key: _open_parts_noting_missing(item, blob, missing) for key, item in value["v"]}
    digest = parse_ref(_encode(value)).digest
    content = blob(digest)
    if content is None:
        missing.append(digest)
        return None
    return _decode(unseal(content))


def part_at(value: Any, words: Sequence[str]) -> Any:
    """Return the part of a composed value at a path. References are not followed."""
    for word in words:
        inner, own = _without_outer_mark(value)
        value = inner.get(word) if isinstance(inner, dict) else None
        if own:
            value = literal(value)
    return value


def composite_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a composed object, each a part. Empty if the value is not an object."""
    inner, own = _without_outer_mark(value)
    if not isinstance(inner, dict):
        return {}
    return {key: literal(item) for key, item in inner.items()} if own else inner


def _without_outer_mark(value: Any) -> tuple[Any, bool]:
    """Return a composed value without its outer mark, and whether all of it is the user's own JSON."""
    mark = value.get(MARK) if isinstance(value, dict) else None
    if mark == "has":
        return _without_outer_mark(value["v"])
    if mark == "lit":
        return value["v"], True
    if mark == "pairs":
        return dict(value["v"]), False
    return (None, False) if mark == "blob" else (value, False)


def mark_on_path(data: Any, path: Sequence[str]) -> int:
    """Return how many words of a path lead to a marked value, which cannot be changed in place; 0 if none does."""
    for depth, word in enumerate(path[:-1], 1):
        data = data.get(word) if isinstance(data, dict) else None
        if isinstance(data, dict) and MARK in data:
            return depth
    return 0
