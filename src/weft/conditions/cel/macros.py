"""The macros of CEL: ``has``, loops over a list or map, and ``cel.bind``.

A macro takes the target, its own name, the arguments and the position. It returns a node, or None if the number of
arguments is wrong. In that case, ``reads.py`` reports how the macro is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.conditions.cel.tree import BindNode, IdentNode, LoopNode, SelectNode

Macro = Callable[[Any, str, tuple[Any, ...], int], Any]


class BadMacro(Exception):
    """A macro with wrong arguments."""

    def __init__(self, code: str, message: str, at: int, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.hint = hint


def _has(_target: Any, _name: str, args: tuple[Any, ...], at: int) -> Any:
    if len(args) != 1:
        return None
    (field,) = args
    if not isinstance(field, SelectNode) or field.tests:
        raise BadMacro("syntax", "`has` takes a field, like `has(a.b)`.", field.at)
    return SelectNode(field.operand, field.field, True, at)


def _loop(target: Any, name: str, args: tuple[Any, ...], at: int) -> Any:
    if len(args) != 2:
        return None
    return LoopNode(name, target, _variable(name, args[0]), args[1], None, at)


def _map(target: Any, name: str, args: tuple[Any, ...], at: int) -> Any:
    if len(args) not in (2, 3):
        return None
    test = args[1] if len(args) == 3 else None
    return LoopNode(name, target, _variable(name, args[0]), test, args[-1], at)


def _bind(target: Any, _name: str, args: tuple[Any, ...], at: int) -> Any:
    if len(args) != 3 or not isinstance(target, IdentNode) or target.name != "cel":
        return None
    return BindNode(_variable("cel.bind", args[0]), args[1], args[2], at)


def _unsupported(_target: Any, name: str, _args: tuple[Any, ...], at: int) -> Any:
    hint = "Write `has(a.b) ? … : …`, or `a.?b.orValue(…)`."
    raise BadMacro("unsupported", f"`{name}` is not supported.", at, hint)


def _variable(name: str, node: Any) -> str:
    if isinstance(node, IdentNode):
        return node.name
    raise BadMacro("syntax", f"the first argument of `{name}` is the name of a variable, like `x`.", node.at)


FUNCTION_MACROS: Final[dict[str, Macro]] = {"has": _has}
METHOD_MACROS: Final[dict[str, Macro]] = {
    "all": _loop,
    "exists": _loop,
    "exists_one": _loop,
    "filter": _loop,
    "map": _map,
    "bind": _bind,
    "optMap": _unsupported,
    "optFlatMap": _unsupported,
}
