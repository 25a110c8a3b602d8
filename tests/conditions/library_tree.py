"""What Google's parser reads from a text, as our own tree.

The library hands a tree out only in serialized form (`cel.expr.ParsedExpr`, a protobuf message). Its macros are
expanded into one general loop with an accumulator; here they become the loops that were written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

from weft.conditions.cel.tree import Bind, Call, Const, Ident, ListOf, Loop, MapOf, Select

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
    return Const(None, 0)


def _const(fields: dict[int, list[Any]]) -> Const:
    for number, values in fields.items():
        value = values[0]
        match number:
            case 2:
                return Const(bool(value), 0)
            case 3:
                return Const(value - 2 * _INT64 if value >= _INT64 else value, 0)
            case 4 | 7:
                return Const(value, 0)
            case 5:
                return Const(struct.unpack("<d", value)[0], 0)
            case 6:
                return Const(value.decode(), 0)
    return Const(None, 0)


def _ident(fields: dict[int, list[Any]]) -> Ident:
    return Ident(_text(fields, 1).removeprefix("."), 0)


def _select(fields: dict[int, list[Any]]) -> Select:
    return Select(_node(fields[1][0]), _text(fields, 2), bool(fields.get(3, [0])[0]), 0)


def _call(fields: dict[int, list[Any]]) -> Call:
    target = _node(fields[1][0]) if 1 in fields else None
    name = _text(fields, 2).removeprefix(".")
    args = _nodes(fields.get(3, []))
    return Call(target, name, merged(name, args), 0)


def _list(fields: dict[int, list[Any]]) -> ListOf:
    packed = fields.get(2, [])
    indexes = [i for raw in packed for i in (_varints(raw) if isinstance(raw, bytes) else [raw])]
    return ListOf(_nodes(fields.get(1, [])), frozenset(indexes), 0)


def _struct(fields: dict[int, list[Any]]) -> MapOf:
    if 1 in fields:
        raise RuntimeError("a protobuf message, which is not supported here")
    entries = [_message(raw) for raw in fields.get(2, [])]
    return MapOf(tuple((_node(e[3][0]), _node(e[4][0]), bool(e.get(5, [0])[0])) for e in entries), 0)


def _loop(fields: dict[int, list[Any]]) -> Loop | Bind:
    var, accu = _text(fields, 1), _text(fields, 3)
    source, init, step, result = (_node(fields[n][0]) for n in (2, 4, 6, 7))
    if var == "#unused":
        return Bind(accu, init, result, 0)
    match init, step:
        case Const(value=bool(value)), Call(args=(_, *tests)):
            # `@result && test`; a test that is a chain of the same operator was merged into it.
            test = tests[0] if len(tests) == 1 else Call(None, step.function, tuple(tests), 0)
            return Loop("all" if value else "exists", source, var, test, None, 0)
        case Const(value=0), Call(args=(test, _, _)):
            return Loop("exists_one", source, var, test, None, 0)
        case _, Call(function="_+_", args=(_, ListOf(items=(value,)))):
            return Loop("map", source, var, None, value, 0)
        case _, Call(args=(test, Call(args=(_, ListOf(items=(value,)))), _)):
            # `filter(x, t)` and `map(x, t, x)` are expanded into the same.
            return Loop("map", source, var, test, value, 0)
    raise AssertionError(f"an unknown loop: {init} {step}")


def merged(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of `&&` and `||`, which chain: `(a && b) && c` is `a && b && c`."""
    if name not in ("_&&_", "_||_"):
        return args
    terms: list[Any] = []
    for arg in args:
        terms += merged(name, arg.args) if isinstance(arg, Call) and arg.function == name else [arg]
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
