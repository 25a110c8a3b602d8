"""Find the variables that an expression reads, and its errors, before it is evaluated.

``names`` are the variables, ``paths`` the fixed parts of the paths into them: ``nodes["a-b"].output.x > state[key]``
reads ``("nodes", "a-b", "output", "x")`` and ``("state",)``. So the engine loads only the outputs that an expression
reads.
"""

from __future__ import annotations

import math
from typing import Any

from weft.conditions.cel.functions import FUNCTIONS, METHODS, CelFunction
from weft.conditions.cel.operators import BINARY, UNARY
from weft.conditions.cel.tree import BindNode, CallNode, ConstNode, IdentNode, ListNode, LoopNode, MapNode, SelectNode
from weft.conditions.cel.values import TYPES
from weft.conditions.failures import ExpressionError
from weft.conditions.paths import Path
from weft.conditions.patterns import BadPattern, compile_pattern
from weft.core.findings import did_you_mean

_LOGIC = {"_&&_", "_||_", "_?_:_"}
_EXTREMES = {"math.greatest", "math.least"}
_NAMESPACES = ("math", "optional")
_MACROS = {
    "all": "list.all(x, x > 0)",
    "exists": "list.exists(x, x > 0)",
    "exists_one": "list.exists_one(x, x > 0)",
    "filter": "list.filter(x, x > 0)",
    "map": "list.map(x, x + 1)",
    "has": "has(a.b)",
}


class ExpressionReads:
    """The paths that an expression reads, and its errors, collected in one walk over its tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.paths: dict[Path, None] = {}
        self.errors: list[ExpressionError] = []

    def visit(self, node: Any, scope: frozenset[str] = frozenset()) -> None:
        path = fixed_path(node, scope)
        if path is not None:
            if len(path) > 1 or path[0] not in TYPES:
                self.paths[path] = None
            return
        match node:
            case ConstNode():
                self._const(node)
            case SelectNode(operand=operand):
                self.visit(operand, scope)
            case CallNode():
                self._call(node, scope)
            case ListNode(items=items):
                for item in items:
                    self.visit(item, scope)
            case MapNode(entries=entries):
                for key, value, _ in entries:
                    self.visit(key, scope)
                    self.visit(value, scope)
            case LoopNode(source=source, var=var, test=test, value=value):
                self.visit(source, scope)
                for part in (test, value):
                    if part is not None:
                        self.visit(part, scope | {var})
            case BindNode(var=var, value=value, body=body):
                self.visit(value, scope)
                self.visit(body, scope | {var})

    def _const(self, node: ConstNode) -> None:
        if isinstance(node.value, bytes):
            self._error("unsupported", "JSON has no bytes.", node.at, "Write a string.")
        elif isinstance(node.value, float) and not math.isfinite(node.value):
            self._error("unsupported", "the number is too large for a double.", node.at)

    def _call(self, node: CallNode, scope: frozenset[str]) -> None:
        name, target = qualified_function_name(node, scope), node.target if not is_function(node, scope) else None
        if target is not None:
            self.visit(target, scope)
        for arg in node.args:
            self.visit(arg, scope)
        if name in UNARY or name in BINARY or name in _LOGIC:
            return
        known = METHODS if target is not None else FUNCTIONS
        signature = known.get(name)
        if signature is None:
            self._unknown(name, node, method=target is not None)
        elif not signature.arguments_min <= len(node.args) <= signature.arguments_max:
            message = f"`{name}` takes {_how_many(signature)}, not {len(node.args)}."
            self._error("arguments", message, node.at)
        elif name == "matches":
            self._pattern(node.args[-1])
        elif name in _EXTREMES:
            self._numbers(name, node.args)

    def _unknown(self, name: str, node: CallNode, *, method: bool) -> None:
        if name in _MACROS:
            self._error("arguments", f"`{name}` is written `{_MACROS[name]}`.", node.at)
            return
        other = FUNCTIONS if method else METHODS
        if name in other:
            hint = f"Write `{name}(x)`." if method else f"Write `x.{name}(…)`."
        else:
            hint = did_you_mean(name, [*(METHODS if method else FUNCTIONS), *_MACROS, *other], quote="`")
        self._error("unknown_function", f"there is no function `{name}`.", node.at, hint)

    def _pattern(self, node: Any) -> None:
        if isinstance(node, ConstNode) and isinstance(node.value, str):
            try:
                compile_pattern(node.value)
            except BadPattern as error:
                self._error("pattern", f"{error}.", node.at)

    def _numbers(self, name: str, args: tuple[Any, ...]) -> None:
        for arg in args:
            if isinstance(arg, ConstNode) and type(arg.value) not in (int, float):
                self._error("arguments", f"`{name}` takes numbers.", arg.at)

    def _error(self, code: str, message: str, at: int, hint: str = "") -> None:
        self.errors.append(ExpressionError(f"expression.{code}", message, at, self.text, hint=hint))


def fixed_path(node: Any, scope: frozenset[str]) -> Path | None:
    """Return the variable and fields that a node reads, or None if one of them is computed."""
    fields: list[str] = []
    while True:
        match node:
            case IdentNode(name=name):
                return None if name in scope else (name, *reversed(fields))
            case SelectNode(operand=operand, field=field):
                fields.append(field)
                node = operand
            case CallNode(target=None, function="_[_]" | "_?._" | "_[?_]", args=(operand, ConstNode(value=str(field)))):
                fields.append(field)
                node = operand
            case _:
                return None


def is_function(node: CallNode, scope: frozenset[str]) -> bool:
    """Return whether a node calls a function: ``size(x)``, or ``math.ceil(x)``, where ``math`` is only a prefix."""
    match node.target:
        case None:
            return True
        case IdentNode(name=name):
            return name in _NAMESPACES and name not in scope
        case _:
            return False


def qualified_function_name(node: CallNode, scope: frozenset[str]) -> str:
    """Return the name of a function or method, as in ``FUNCTIONS`` and ``METHODS``."""
    if node.target is not None and is_function(node, scope):
        return f"{node.target.name}.{node.function}"
    return node.function


def _how_many(signature: CelFunction) -> str:
    least, most = signature.arguments_min, signature.arguments_max
    if least == most:
        return {0: "no argument", 1: "1 argument"}.get(least, f"{least} arguments")
    return f"{least} or {most} arguments" if most - least == 1 else f"at least {least} arguments"
