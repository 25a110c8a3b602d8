"""What Google's parser reads from a text, as our own tree.

The library hands a tree out only in serialized form (`cel.expr.ParsedExpr`, a protobuf message). Its macros are
expanded into one general loop with an accumulator; here they become the loops that were written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

from weft.conditions.cel.tree import BindNode, CallNode, ConstNode, IdentNode, ListNode, LoopNode, MapNode, SelectNode

_INT64 = 1 << 63


def library_tree(text: str) -> Any:
    """The tree, with 0 for every position.

    Raises:
        RuntimeError, TypeError: the library refuses the text.
    """
    parsed = _message(_message(_environment().compile(text, disable_check=True).serialize())[2][0])
    return _node(parsed[2][0])


@cache
def _environment() -> Any:
    from cel_expr_python import cel  # type: ignore[import-untyped]
    from cel_expr_python.ext import ext_bindings, ext_optional  # type: ignore[import-untyped]

    return cel.NewEnv(extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional()])


def _node(raw: bytes) -> Any:
    fields = _message(raw)
    for number, read in ((3, _const), (4, _ident), (5, _select), (6, _call), (7, _list), (8, _struct), (9, _loop)):
        if number in fields:
            return read(_message(fields[number][0]))
    return ConstNode(None, 0)


def _const(fields: dict[int, list[Any]]) -> ConstNode:
    for number, values in fields.items():
        value = values[0]
        match number:
            case 2:
                return ConstNode(bool(value), 0)
            case 3:
                return ConstNode(value - 2 * _INT64 if value >= _INT64 else value, 0)
            case 4 | 7:
                return ConstNode(value, 0)
            case 5:
                return ConstNode(struct.unpack("<d", value)[0], 0)
            case 6:
                return ConstNode(value.decode(), 0)
    return ConstNode(None, 0)


def _ident(fields: dict[int, list[Any]]) -> IdentNode:
    return IdentNode(_text(fields, 1).removeprefix("."), 0)


def _select(fields: dict[int, list[Any]]) -> SelectNode:
    return SelectNode(_node(fields[1][0]), _text(fields, 2), bool(fields.get(3, [0])[0]), 0)


def _call(fields: dict[int, list[Any]]) -> CallNode:
    target = _node(fields[1][0]) if 1 in fields else None
    name = _text(fields, 2).removeprefix(".")
    args = _nodes(fields.get(3, []))
    return CallNode(target, name, merged(name, args), 0)


def _list(fields: dict[int, list[Any]]) -> ListNode:
    packed = fields.get(2, [])
    indexes = [i for raw in packed for i in (_varints(raw) if isinstance(raw, bytes) else [raw])]
    return ListNode(_nodes(fields.get(1, [])), frozenset(indexes), 0)


def _struct(fields: dict[int, list[Any]]) -> MapNode:
    if 1 in fields:
        raise RuntimeError("a protobuf message, which is not supported here")
    entries = [_message(raw) for raw in fields.get(2, [])]
    return MapNode(tuple((_node(e[3][0]), _node(e[4][0]), bool(e.get(5, [0])[0])) for e in entries), 0)


def _loop(fields: dict[int, list[Any]]) -> LoopNode | BindNode:
    var, accu = _text(fields, 1), _text(fields, 3)
    source, init, step, result = (_node(fields[n][0]) for n in (2, 4, 6, 7))
    if var == "#unused":
        return BindNode(accu, init, result, 0)
    match init, step:
        case ConstNode(value=bool(value)), CallNode(args=(_, *tests)):
            # `@result && test`; a test that is a chain of the same operator was merged into it.
            test = tests[0] if len(tests) == 1 else CallNode(None, step.function, tuple(tests), 0)
            return LoopNode("all" if value else "exists", source, var, test, None, 0)
        case ConstNode(value=0), CallNode(args=(test, _, _)):
            return LoopNode("exists_one", source, var, test, None, 0)
        case _, CallNode(function="_+_", args=(_, ListNode(items=(value,)))):
            return LoopNode("map", source, var, None, value, 0)
        case _, CallNode(args=(test, CallNode(args=(_, ListNode(items=(value,)))), _)):
            # `filter(x, t)` and `map(x, t, x)` are expanded into the same.
            return LoopNode("map", source, var, test, value, 0)
    raise AssertionError(f"an unknown loop: {init} {step}")


def merged(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of `&&` and `||`, which chain: `(a && b) && c` is `a && b && c`."""
    if name not in ("_&&_", "_||_"):
        return args
    terms: list[Any] = []
    for arg in args:
        terms += merged(name, arg.args) if isinstance(arg, CallNode) and arg.function == name else [arg]
    return tuple(terms)


def _nodes(raws: list[Any]) -> tuple[Any, ...]:
    return tuple(_node(raw) for raw in raws)


def _text(fields: dict[int, list[Any]], number: int) -> str:
    text: str = fields[number][0].decode() if number in fields else ""
    return text


def _message(raw: bytes) -> dict[int, list[Any]]:
    """The fields of a message by number, each with its values in order."""
    fields: dict[int, list[Any]] = {}
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        match key & 7:
            case 0:
                value, at = _varint(raw, at)
            case 1:
                value, at = raw[at : at + 8], at + 8
            case 2:
                size, at = _varint(raw, at)
                value, at = raw[at : at + size], at + size
            case kind:
                raise AssertionError(f"the parser wrote wire type {kind}")
        fields.setdefault(key >> 3, []).append(value)
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
