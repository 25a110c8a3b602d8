"""Compare the inputs of two starts that have the same id, argument by argument or fact by fact."""

from __future__ import annotations

from typing import Any

from weft.core.values import decode


def fact_differences(a: bytes, b: bytes) -> dict[str, tuple[object, object]]:
    """Return the differences between two inputs of a goal, by fact. A fact in only one input is a difference."""
    first, second = decode(a) or {}, decode(b) or {}
    absent = "nothing"
    return {
        name: (first.get(name, absent), second.get(name, absent))
        for name in {**first, **second}
        if name not in first or name not in second or not _json_equal(first[name], second[name])
    }


def argument_differences(a: bytes, b: bytes) -> dict[str, tuple[object, object]]:
    """Return the differences between two inputs, by argument. An argument that one input omits is not compared."""
    first, second = decode(a), decode(b)
    return {
        name: (first[name], second[name])
        for name in first
        if name in second and not _json_equal(first[name], second[name])
    }


def _json_equal(a: Any, b: Any) -> bool:
    """Return whether two JSON values are equal. Unlike in Python, ``true`` does not equal ``1``."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_json_equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_json_equal, a, b))
    return bool(a == b) and isinstance(a, bool) is isinstance(b, bool)
