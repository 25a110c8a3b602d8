"""JSON Patch (RFC 6902) on documents in which listed items have ids.

In a list of objects, a path segment that is neither a number nor ``-`` names the element with that id. So
``/nodes/price/timeout`` works whether the nodes are a mapping or a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core.findings import Finding
from weft.errors import BadPatch

_OPS = ("add", "remove", "replace", "move", "copy", "test")
_WITH_VALUE = ("add", "replace", "test")
_WITH_FROM = ("move", "copy")
_END = "-"
_encode = msgspec.json.Encoder(order="sorted").encode


class _Wrong(Exception):
    """An operation cannot be applied."""


def apply_operations(document: Any, operations: Sequence[Any], ids: Sequence[str] = ("id",)) -> Any:
    """Return a copy of the document after these operations, all or none. ``ids`` are the fields that name an item.

    Raises:
        BadPatch: ``findings`` has the malformed operations, or else the first that cannot be applied.
    """
    findings = [finding for index, one in enumerate(operations) for finding in _malformed(index, one)]
    if findings:
        raise _bad_patch(findings)
    changed = msgspec.json.decode(msgspec.json.encode(document))
    for index, operation in enumerate(operations):
        try:
            changed = _Target(changed, ids).apply(operation)
        except _Wrong as error:
            name, path = operation["op"], operation["path"]
            text = f"operation {index} ({name} {path}) cannot be applied: {error}."
            raise _bad_patch([Finding("patch.invalid", text, f"ops[{index}]")]) from None
    return changed


def _bad_patch(findings: list[Finding]) -> BadPatch:
    first, more = findings[0].message, len(findings) - 1
    rest = f" ({more} more)" if more else ""
    return BadPatch(f"The patch is not valid: {first.rstrip('.')}{rest}.", findings=findings)


def _malformed(index: int, operation: Any) -> list[Finding]:
    """Return what is wrong with an operation, whatever the document."""
    at = f"ops[{index}]"
    if not isinstance(operation, Mapping) or operation.get("op") not in _OPS:
        return [Finding("patch.invalid", f"operation {index} is none of {', '.join(_OPS)}.", at)]
    name = operation["op"]
    needed = ["path", *(["value"] if name in _WITH_VALUE else []), *(["from"] if name in _WITH_FROM else [])]
    found = []
    for field in needed:
        if field not in operation:
            found.append(Finding("patch.invalid", f"operation {index} ({name}) has no {field}.", at))
        elif field != "value" and not _is_pointer(operation[field]):
            text = f"the {field} of operation {index} is not a JSON pointer: it begins with /."
            found.append(Finding("patch.invalid", text, f"{at}.{field}"))
    return found


def _is_pointer(text: Any) -> bool:
    return isinstance(text, str) and (not text or text.startswith("/"))


class _Target:
    """The document that operations change."""

    def __init__(self, document: Any, ids: Sequence[str]) -> None:
        self._document = document
        self._ids = ids

    def apply(self, operation: Mapping[str, Any]) -> Any:
        path = _segments(operation["path"])
        match operation["op"]:
            case "add":
                self._add(path, _copied(operation["value"]))
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, _copied(operation["value"]))
            case "move":
                self._move(_segments(operation["from"]), path)
            case "copy":
                self._add(path, _copied(self._get(_segments(operation["from"]))))
            case "test":
                if _encode(self._get(path)) != _encode(operation["value"]):
                    raise _Wrong("the value there is another one")
        return self._document

    def _get(self, path: Sequence[str]) -> Any:
        place = self._document
        for segment in path:
            place = place[self._key(place, segment)]
        return place

    def _key(self, place: Any, segment: str) -> Any:
        """Return the key or index of an existing element."""
        if isinstance(place, dict):
            if segment not in place:
                raise _Wrong(f'there is no "{segment}"')
            return segment
        if isinstance(place, list):
            index = self._index(place, segment)
            if not 0 <= index < len(place):
                raise _Wrong(f"the list has {len(place)} elements")
            return index
        raise _Wrong(f'"{segment}" is inside something that is neither a list nor a mapping')

    def _index(self, place: list[Any], segment: str) -> int:
        if segment.isdecimal() and (segment == "0" or not segment.startswith("0")):
            return int(segment)
        if segment == _END:
            return len(place)
        for index, item in enumerate(place):
            if isinstance(item, dict) and any(item.get(name) == segment for name in self._ids):
                return index
        raise _Wrong(f'the list has no element called "{segment}"')

    def _add(self, path: Sequence[str], value: Any) -> None:
        if not path:
            self._document = value
            return
        place = self._get(path[:-1])
        if isinstance(place, dict):
            place[path[-1]] = value
        elif isinstance(place, list):
            index = self._index(place, path[-1])
            if index > len(place):
                raise _Wrong(f"the list has {len(place)} elements")
            place.insert(index, value)
        else:
            raise _Wrong("its parent is neither a list nor a mapping")

    def _remove(self, path: Sequence[str]) -> None:
        if not path:
            raise _Wrong("the whole document cannot be removed")
        place = self._get(path[:-1])
        del place[self._key(place, path[-1])]

    def _replace(self, path: Sequence[str], value: Any) -> None:
        if not path:
            self._document = value
            return
        place = self._get(path[:-1])
        place[self._key(place, path[-1])] = value

    def _move(self, source: Sequence[str], path: Sequence[str]) -> None:
        if list(path[: len(source)]) == list(source) and len(path) > len(source):
            raise _Wrong("nothing can be moved into itself")
        value = self._get(source)
        self._remove(source)
        self._add(path, value)


def _segments(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _copied(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
