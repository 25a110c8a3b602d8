"""Differences between JSON values: as pointers with both values, and as JSON Patch operations (RFC 6902). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

CHANGES_MAX = 100
"""At most so many differences of one pair of values are listed."""


class ChangedValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One difference, at a JSON Pointer. A side that has no value there leaves it out."""

    pointer: str
    a: Any | UnsetType = UNSET
    b: Any | UnsetType = UNSET


def changed_values(a: Any, b: Any) -> list[ChangedValue]:
    """Return the smallest parts that differ, at most ``CHANGES_MAX``."""
    return list(islice(_walk_differences(a, b, ""), CHANGES_MAX))


def _walk_differences(a: Any, b: Any, at: str) -> Iterator[ChangedValue]:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in [*a, *(name for name in b if name not in a)]:
            yield from _walk_differences(a.get(name, UNSET), b.get(name, UNSET), f"{at}/{pointer_segment(name)}")
    elif isinstance(a, list) and isinstance(b, list):
        for index in range(max(len(a), len(b))):
            left = a[index] if index < len(a) else UNSET
            right = b[index] if index < len(b) else UNSET
            yield from _walk_differences(left, right, f"{at}/{index}")
    elif type(a) is not type(b) or a != b:
        yield ChangedValue(at, a, b)


def patch_operations(a: Any, b: Any) -> list[dict[str, Any]]:
    """Return operations that turn one document into another. Applied in order, they give exactly the second."""
    return list(_diff_operations(a, b, ""))


def _diff_operations(a: Any, b: Any, at: str) -> Iterator[dict[str, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in a:
            if name not in b:
                yield {"op": "remove", "path": f"{at}/{pointer_segment(name)}"}
        for name, value in b.items():
            path = f"{at}/{pointer_segment(name)}"
            if name in a:
                yield from _diff_operations(a[name], value, path)
            else:
                yield {"op": "add", "path": path, "value": value}
    elif isinstance(a, list) and isinstance(b, list):
        for index in range(len(a) - 1, len(b) - 1, -1):
            yield {"op": "remove", "path": f"{at}/{index}"}
        for index, value in enumerate(b):
            if index < len(a):
                yield from _diff_operations(a[index], value, f"{at}/{index}")
            else:
                yield {"op": "add", "path": f"{at}/-", "value": value}
    elif type(a) is not type(b) or a != b:
        yield {"op": "replace", "path": at, "value": b}


def pointer_segment(name: str) -> str:
    """Return a name as a segment of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")
