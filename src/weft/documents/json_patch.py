"""JSON Patch (RFC 6902) on documents in which listed items have ids.

In a list of objects, a path segment that is neither a number nor ``-`` names the element with that id. So
``/nodes/price/timeout`` works whether the nodes are a mapping or a list.

A few short operations can ask for a huge document (each copy can double it) or for endless work. So the size is counted
before anything is copied, and all operations together can read and copy only so much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core.findings import Finding
from weft.core.plurals import shortened
from weft.errors import BadPatch, LimitExceeded

_OPS = ("add", "remove", "replace", "move", "copy", "test")
_WITH_VALUE = ("add", "replace", "test")
_WITH_FROM = ("move", "copy")
_END = "-"
BYTES_MAX = 1024 * 1024
"""The size of the changed document as JSON, unless the caller has another limit."""
WORK_FACTOR = 16
"""How often all operations together may read and copy a document of the largest size."""
ITEM_WORK = 16
"""What it costs to look at an item of a list, in bytes."""
INDEX_DIGITS_MAX = 9
_encode = msgspec.json.Encoder(order="sorted").encode


class _Wrong(Exception):
    """An operation cannot be applied."""


def apply_operations(
    document: Any, operations: Sequence[Any], ids: Sequence[str] = ("id",), *, bytes_max: int = BYTES_MAX
) -> Any:
    """Return a copy of the document after these operations, all or none. ``ids`` are the fields that name an item.

    Raises:
        BadPatch: ``findings`` has the malformed operations, or else the first that cannot be applied.
        LimitExceeded: the document would become too large or too deep, or the operations are too much work.
    """
    findings = [finding for index, one in enumerate(operations) for finding in _find_malformed(index, one)]
    if findings:
        raise _bad_patch(findings)
    target = _Target(document, ids, bytes_max)
    for index, operation in enumerate(operations):
        try:
            target.apply(operation)
        except _Wrong as error:
            name, path = operation["op"], shortened(operation["path"])
            text = f"ops[{index}] ({name} {path}) cannot be applied: {error}."
            raise _bad_patch([Finding("patch.invalid", text, f"ops[{index}]")]) from None
        except RecursionError:
            raise _limit_exceeded(f"The document is too deep after ops[{index}].") from None
    return target.document


def _bad_patch(findings: list[Finding]) -> BadPatch:
    first, more = findings[0].message, len(findings) - 1
    rest = f" ({more} more)" if more else ""
    return BadPatch(f"The patch is not valid: {first.rstrip('.')}{rest}.", findings=findings)


def _find_malformed(index: int, operation: Any) -> list[Finding]:
    """Return what is wrong with an operation, whatever the document."""
    at = f"ops[{index}]"
    if not isinstance(operation, Mapping) or operation.get("op") not in _OPS:
        return [Finding("patch.invalid", f"ops[{index}] is none of {', '.join(_OPS)}.", at)]
    name = operation["op"]
    needed = ["path", *(["value"] if name in _WITH_VALUE else []), *(["from"] if name in _WITH_FROM else [])]
    found = []
    for field in needed:
        if field not in operation:
            found.append(Finding("patch.invalid", f"ops[{index}] ({name}) has no {field}.", at))
        elif field != "value" and not _is_pointer(operation[field]):
            text = f"the {field} of ops[{index}] is not a JSON pointer: it begins with /."
            found.append(Finding("patch.invalid", text, f"{at}.{field}"))
    return found


def _is_pointer(text: Any) -> bool:
    return isinstance(text, str) and (not text or text.startswith("/"))


class _Budget:
    """How large the document is, and how much the operations may still read and copy. Both are bytes of JSON."""

    def __init__(self, size: int, bytes_max: int) -> None:
        self._size = size
        self._bytes_max = bytes_max
        self._work = WORK_FACTOR * bytes_max

    def spend(self, work: int) -> None:
        """Count work."""
        self._work -= work
        if self._work < 0:
            raise _limit_exceeded("The operations of the patch read and copy too much.")

    def encoded(self, value: Any) -> bytes:
        """Encode a part of the document, or a value for it."""
        raw = _encode(value)
        self.spend(len(raw))
        return raw

    def grow(self, size: int) -> None:
        """Count what is put into the document, before it is."""
        self._size += size
        if self._size > self._bytes_max:
            raise _limit_exceeded(
                f"The new document has {self._size:,} bytes or more; the limit is {self._bytes_max:,}."
            )

    def shrink(self, size: int) -> None:
        """Count what is taken out of the document."""
        self._size -= size


class _Target:
    """The document that operations change."""

    def __init__(self, document: Any, ids: Sequence[str], bytes_max: int) -> None:
        raw = msgspec.json.encode(document)
        self.document = msgspec.json.decode(raw)
        self._ids = ids
        self._budget = _Budget(len(raw), bytes_max)

    def apply(self, operation: Mapping[str, Any]) -> None:
        path = _pointer_segments(operation["path"])
        match operation["op"]:
            case "add":
                self._add_value(path, self._budget.encoded(operation["value"]))
            case "remove":
                self._remove_element(path)
            case "replace":
                raw = self._budget.encoded(operation["value"])
                if path:
                    place = self._value_at(path[:-1])
                    self._set_element(place, self._existing_key(place, path[-1]), raw)
                else:
                    self._add_value(path, raw)
            case "move":
                self._move_value(_pointer_segments(operation["from"]), path)
            case "copy":
                self._add_value(path, self._budget.encoded(self._value_at(_pointer_segments(operation["from"]))))
            case "test":
                if self._budget.encoded(self._value_at(path)) != self._budget.encoded(operation["value"]):
                    raise _Wrong("the value there is another one")

    def _value_at(self, path: Sequence[str]) -> Any:
        place = self.document
        for segment in path:
            place = place[self._existing_key(place, segment)]
        return place

    def _existing_key(self, place: Any, segment: str) -> Any:
        """Return the key or index of an existing element."""
        if isinstance(place, dict):
            if segment not in place:
                raise _Wrong(f'there is no "{shortened(segment)}"')
            return segment
        if isinstance(place, list):
            index = self._list_index(place, segment)
            if not 0 <= index < len(place):
                raise _Wrong(f"the list has {len(place)} elements")
            return index
        raise _Wrong(f'"{shortened(segment)}" is inside something that is neither a list nor a mapping')

    def _list_index(self, place: list[Any], segment: str) -> int:
        if segment.isdecimal() and (segment == "0" or not segment.startswith("0")):
            return int(segment[:INDEX_DIGITS_MAX])
        if segment == _END:
            return len(place)
        self._budget.spend(len(place) * ITEM_WORK)
        for index, item in enumerate(place):
            if isinstance(item, dict) and any(item.get(name) == segment for name in self._ids):
                return index
        raise _Wrong(f'the list has no element called "{shortened(segment)}"')

    def _add_value(self, path: Sequence[str], raw: bytes) -> None:
        """Add a value, given as JSON."""
        if not path:
            self._budget.shrink(len(self._budget.encoded(self.document)))
            self._budget.grow(len(raw))
            self.document = msgspec.json.decode(raw)
            return
        place = self._value_at(path[:-1])
        if isinstance(place, dict):
            self._set_element(place, path[-1], raw)
        elif isinstance(place, list):
            index = self._list_index(place, path[-1])
            if index > len(place):
                raise _Wrong(f"the list has {len(place)} elements")
            self._budget.grow(len(raw) + 1)
            place.insert(index, msgspec.json.decode(raw))
        else:
            raise _Wrong("its parent is neither a list nor a mapping")

    def _set_element(self, place: Any, key: Any, raw: bytes) -> None:
        """Set an element of a list or a mapping, which may be new in a mapping."""
        if isinstance(place, list) or key in place:
            self._budget.shrink(len(self._budget.encoded(place[key])))
            self._budget.grow(len(raw))
        else:
            self._budget.grow(len(raw) + len(_encode(key)) + 2)
        place[key] = msgspec.json.decode(raw)

    def _remove_element(self, path: Sequence[str]) -> bytes:
        """Remove an element. Returns it as JSON."""
        if not path:
            raise _Wrong("the whole document cannot be removed")
        place = self._value_at(path[:-1])
        key = self._existing_key(place, path[-1])
        raw = self._budget.encoded(place[key])
        self._budget.shrink(len(raw) + (len(_encode(key)) + 2 if isinstance(place, dict) else 1))
        del place[key]
        return raw

    def _move_value(self, source: Sequence[str], path: Sequence[str]) -> None:
        if list(path[: len(source)]) == list(source) and len(path) > len(source):
            raise _Wrong("nothing can be moved into itself")
        if source != path:
            self._add_value(path, self._remove_element(source))
        else:
            self._value_at(source)


def _pointer_segments(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _limit_exceeded(message: str) -> LimitExceeded:
    return LimitExceeded(message, hint="The limits are in [tool.weft.limits] of pyproject.toml.", code="limit.patches")
