"""The syntax tree, read from the parser's serialized form (`cel.expr.ParsedExpr`, a protobuf message).

Six fields of protobuf's wire format are all that is needed, so no protobuf library is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Node = "Const | Ident | Select | Call | ListOf | MapOf | Fold | Message"
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Const:
    """A literal; `bytes` literals are kept as such, to be refused."""

    value: Any
    at: int


@dataclass(frozen=True, slots=True)
class Ident:
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `has(operand.field)` if it only tests."""

    operand: Any
    field: str
    tests: bool
    at: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method (with a target) or an operator (`_>=_`)."""

    target: Any
    function: str
    args: tuple[Any, ...]
    at: int


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, ?b]`; `optional` has the indexes of the elements that may be missing."""

    items: tuple[Any, ...]
    optional: frozenset[int]
    at: int


@dataclass(frozen=True, slots=True)
class MapOf:
    """`{key: value, ?key: value}`: key, value, whether it may be missing."""

    entries: tuple[tuple[Any, Any, bool], ...]
    at: int


@dataclass(frozen=True, slots=True)
class Message:
    """`pkg.Type{field: value}`: protobuf, which documents do not have."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Fold:
    """What macros (`all`, `exists`, `map`, `filter`, `cel.bind`) become: a loop with an accumulator."""

    var: str
    source: Any
    accu: str
    init: Any
    condition: Any
    step: Any
    result: Any
    at: int


def read_tree(serialized: bytes) -> Any:
    """The tree of a serialized, unchecked expression (an `Any` around a ParsedExpr)."""
    parsed = _message(_message(serialized)[2][0])
    return _Reader(_positions(_message(parsed[3][0]))).node(parsed[2][0])


class _Reader:
    """Turns messages into nodes; the parser's own limit keeps the recursion shallow."""

    def __init__(self, positions: dict[int, int]) -> None:
        self.positions = positions

    def node(self, raw: bytes) -> Any:
        fields = _message(raw)
        at = self.positions.get(fields.get(2, [0])[0], 0)
        for number, read in (
            (3, self._const), (4, self._ident), (5, self._select), (6, self._call),
            (7, self._list), (8, self._struct), (9, self._fold),
        ):  # fmt: skip
            if number in fields:
                return read(_message(fields[number][0]), at)
        return Const(None, at)

    def _const(self, fields: dict[int, list[Any]], at: int) -> Const:
        for number, values in fields.items():
            value = values[0]
            match number:
                case 1:
                    return Const(None, at)
                case 2:
                    return Const(bool(value), at)
                case 3:
                    return Const(value - 2 * _INT64 if value >= _INT64 else value, at)
                case 4:
                    return Const(value, at)
                case 5:
                    return Const(struct.unpack("<d", value)[0], at)
                case 6:
                    return Const(value.decode(), at)
                case 7:
                    return Const(value, at)
        return Const(None, at)

    def _ident(self, fields: dict[int, list[Any]], at: int) -> Ident:
        return Ident(_text(fields, 1).removeprefix("."), at)

    def _select(self, fields: dict[int, list[Any]], at: int) -> Select:
        return Select(self.node(fields[1][0]), _text(fields, 2), bool(fields.get(3, [0])[0]), at)

    def _call(self, fields: dict[int, list[Any]], at: int) -> Call:
        target = self.node(fields[1][0]) if 1 in fields else None
        return Call(target, _text(fields, 2), self._nodes(fields.get(3, [])), at)

    def _list(self, fields: dict[int, list[Any]], at: int) -> ListOf:
        packed = fields.get(2, [])
        indexes = [i for raw in packed for i in (_varints(raw) if isinstance(raw, bytes) else [raw])]
        return ListOf(self._nodes(fields.get(1, [])), frozenset(indexes), at)

    def _struct(self, fields: dict[int, list[Any]], at: int) -> MapOf | Message:
        if 1 in fields:
            return Message(_text(fields, 1), at)
        entries = [_message(raw) for raw in fields.get(2, [])]
        return MapOf(
            tuple((self.node(e[3][0]), self.node(e[4][0]), bool(e.get(5, [0])[0])) for e in entries),
            at,
        )

    def _fold(self, fields: dict[int, list[Any]], at: int) -> Fold:
        source, init, condition, step, result = (self.node(fields[n][0]) for n in (2, 4, 5, 6, 7))
        return Fold(_text(fields, 1), source, _text(fields, 3), init, condition, step, result, at)

    def _nodes(self, raws: list[Any]) -> tuple[Any, ...]:
        return tuple(self.node(raw) for raw in raws)


def _positions(source_info: dict[int, list[Any]]) -> dict[int, int]:
    entries = (_message(raw) for raw in source_info.get(4, []))
    return {entry.get(1, [0])[0]: entry.get(2, [0])[0] for entry in entries}


def _text(fields: dict[int, list[Any]], number: int) -> str:
    text: str = fields[number][0].decode() if number in fields else ""
    return text


def _message(raw: bytes) -> dict[int, list[Any]]:
    """The fields of a message by number, each with its values in order."""
    fields: dict[int, list[Any]] = {}
    at, end = 0, len(raw)
    while at < end:
        # Nearly every number here fits into one byte, and is read in place: a graph may have ten thousand expressions.
        key = raw[at]
        key, at = (key, at + 1) if key < 0x80 else _varint(raw, at)
        kind = key & 7
        if kind == 1:
            value: Any = raw[at : at + 8]
            at += 8
        elif kind in (0, 2):
            value = raw[at]
            value, at = (value, at + 1) if value < 0x80 else _varint(raw, at)
            if kind == 2:
                size, value = value, raw[at : at + value]
                at += size
        else:
            raise AssertionError(f"the parser wrote wire type {kind}")
        known = fields.get(key >> 3)
        if known is None:
            fields[key >> 3] = [value]
        else:
            known.append(value)
    return fields


def _varint(raw: bytes, at: int) -> tuple[Any, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varints(raw: bytes) -> Iterator[int]:
    at = 0
    while at < len(raw):
        value, at = _varint(raw, at)
        yield value
