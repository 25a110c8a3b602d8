"""The expressions of graphs: an adapter from ``weft.conditions`` to the compiler in ``weft.core.graph``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.conditions import (
    BadExpression,
    Condition,
    Expression,
    Template,
    compile_condition,
    compile_expression,
    compile_template,
)
from weft.conditions.failures import shorten
from weft.core.findings import At
from weft.core.graph.language import Fault, Unreadable
from weft.errors import WeftError

Resolve = Callable[[str], Any]
"""Returns the content of a blob reference (``cas://sha256:…``): bytes, text or decoded JSON; None if it is missing."""

_PATH = re.compile(r"(?:input|state|output|nodes)(?:\.[A-Za-z_][A-Za-z0-9_]{0,60}){1,8}")
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while",
})  # fmt: skip
_PIECE = re.compile(r'\[(\d+)\]|\["([^"]*)"\]|\.?([^.\[]+)')


class ExpressionUses(NamedTuple):
    """The names and paths that one expression reads."""

    names: frozenset[str]
    paths: frozenset[tuple[str, ...]]
    mentions_error: bool


class Conditions:
    """The languages of conditions: CEL, JSON Schema, JSONPath and sandboxed Python, if ``python`` allows it."""

    def __init__(self, resolve: Resolve | None = None, *, python: bool | None = None) -> None:
        self._resolve = resolve
        self._python = python

    def condition(self, source: Any, /) -> ExpressionUses:
        return _find_uses(lambda: compile_condition(source, resolve=self._resolve, python=self._python))

    def expression(self, source: str, /) -> ExpressionUses:
        return _plain_path(source) or _find_uses(lambda: compile_expression(source))

    def template(self, source: Any, /) -> ExpressionUses:
        lone = isinstance(source, str) and source.startswith("${") and source.endswith("}")
        return (_plain_path(source[2:-1]) if lone else None) or _find_uses(lambda: compile_template(source))


def _plain_path(text: str) -> ExpressionUses | None:
    """Return what a plain path like ``input.order_id`` reads, without compiling it. Large documents have many paths."""
    if not _PATH.fullmatch(text):
        return None
    path = tuple(text.split("."))
    if not _RESERVED.isdisjoint(path):
        return None
    return ExpressionUses(
        frozenset(path[:1]), frozenset([path]), path[0] == "error" or path[:2] == ("state", "_last_error")
    )


def _find_uses(attempt: Callable[[], Condition | Expression | Template]) -> ExpressionUses:
    try:
        read = attempt()
    except BadExpression as error:
        raise Unreadable([_fault_of_error(found) for found in error.errors]) from None
    except WeftError as error:
        raise Unreadable([Fault(error.code, error.message, hint=error.hint)]) from None
    error_too = "error" in read.names or any(path[:2] == ("state", "_last_error") for path in read.paths)
    return ExpressionUses(read.names, read.paths, error_too)


def _fault_of_error(found: Any) -> Fault:
    where = ""
    if found.position is not None:
        where = f" (at character {found.position + 1} of `{shorten(found.text)}`)"
    elif found.text:
        where = f" (in `{shorten(found.text)}`)"
    return Fault(found.code, f"{found.message}{where}", _split_path(found.path), found.hint)


def _split_path(path: str) -> At:
    """Split a path such as ``all[1].schema`` into keys and indexes."""
    found = _PIECE.findall(path)
    return tuple(int(index) if index else quoted or name for index, quoted, name in found)
