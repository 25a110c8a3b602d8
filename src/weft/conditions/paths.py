"""Paths that expressions read: their text, and the nodes whose outputs they read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

Path = tuple[str, ...]
"""A bound name and the fields below it: ``("nodes", "a-b", "output")``."""

NODE_ROOTS: Final = frozenset({"nodes", "ctx"})


def path_text(path: Iterable[str]) -> str:
    """Return a path as CEL writes it: ``nodes["a-b"].output``."""
    text = ""
    for name in path:
        text += field_text(name) if text else name
    return text


def field_text(name: str) -> str:
    """Return a field as CEL writes it after a value: ``.output``, ``["a-b"]``."""
    return f".{name}" if name.isidentifier() else f'["{name}"]'


def nodes_read(paths: Iterable[Path]) -> frozenset[str] | None:
    """Return the nodes whose outputs these paths read, or None if they may read the output of any node."""
    names: set[str] = set()
    for path in paths:
        if path[0] in NODE_ROOTS:
            if len(path) == 1:
                return None
            names.add(path[1])
    return frozenset(names)
