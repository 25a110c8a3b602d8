"""References to secrets inside values. A reference names the place of a secret and never contains the secret. Pure.

A user's own JSON could look like a reference, so ``values.encode`` refuses an ordinary object with the key ``$secret``.
Only a ``Reference`` is encoded as a reference, and JSON is decoded to one only where a type declares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from weft.core.unstorable import child_values

KEY = "$secret"
MARK = b'"$secret"'
"""Bytes that the JSON of every reference contains."""


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of a secret: ``env:NAME`` or ``file:/path``."""

    ref: str = msgspec.field(name=KEY)


def is_forged(value: object, raw: bytes) -> bool:
    """Return whether the JSON of a value has more references than the value itself."""
    return _count_in_json(msgspec.json.decode(raw)) > _count_references(value)


def references_in(raw: bytes) -> frozenset[str]:
    """Return the places of all secrets to which JSON refers."""
    return frozenset(_reference_names(msgspec.json.decode(raw))) if MARK in raw else frozenset()


def _reference_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        place = value.get(KEY)
        if isinstance(place, str):
            yield place
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _reference_names(part)


def _count_in_json(value: Any) -> int:
    """Count the objects in decoded JSON that look like references, at any depth."""
    if isinstance(value, dict):
        return (KEY in value) + sum(map(_count_in_json, value.values()))
    return sum(map(_count_in_json, value)) if isinstance(value, list) else 0


def _count_references(value: object) -> int:
    """Count the references in a value. The value was encoded before, so it cannot contain itself."""
    if isinstance(value, Reference):
        return 1
    return sum(_count_references(part) for _, part in child_values(value))
