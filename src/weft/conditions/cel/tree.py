"""The syntax tree of an expression. ``at`` is the position in the text that an error about the node shows."""

from __future__ import annotations

from typing import Any

import msgspec

Node = "ConstNode | IdentNode | SelectNode | CallNode | ListNode | MapNode | LoopNode | BindNode"


class ConstNode(msgspec.Struct, frozen=True, gc=False):
    """A literal. Bytes literals are parsed too, so that the error names them."""

    value: Any
    at: int


class IdentNode(msgspec.Struct, frozen=True, gc=False):
    name: str
    at: int


class SelectNode(msgspec.Struct, frozen=True, gc=False):
    """``operand.field``, or ``has(operand.field)`` if ``tests`` is set."""

    operand: Any
    field: str
    tests: bool
    at: int


class CallNode(msgspec.Struct, frozen=True, gc=False):
    """A call of a function, a method (with a target) or an operator (``_>=_``).

    ``_&&_`` and ``_||_`` take two or more arguments.
    """

    target: Any
    function: str
    args: tuple[Any, ...]
    at: int


class ListNode(msgspec.Struct, frozen=True, gc=False):
    """``[a, ?b]``; ``optional`` contains the indexes of the elements that may be missing."""

    items: tuple[Any, ...]
    optional: frozenset[int]
    at: int


class MapNode(msgspec.Struct, frozen=True, gc=False):
    """``{key: value, ?key: value}``. Each entry has a key, a value, and whether it may be missing."""

    entries: tuple[tuple[Any, Any, bool], ...]
    at: int


class LoopNode(msgspec.Struct, frozen=True, gc=False):
    """``source.all(var, test)``, and likewise ``exists``, ``exists_one``, ``filter`` and ``map``.

    Only ``map`` has a value; its test is optional.
    """

    kind: str
    source: Any
    var: str
    test: Any
    value: Any
    at: int


class BindNode(msgspec.Struct, frozen=True, gc=False):
    """``cel.bind(var, value, body)``."""

    var: str
    value: Any
    body: Any
    at: int
