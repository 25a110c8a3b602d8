"""References to secrets among values: only where one is, never what it is. Pure.

A reference is JSON that users' own JSON could look like. So a plain object with its key is refused wherever values come
in (`values.encode`); only a `Reference` is written as one, and read as one only where a type asks for it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.offences import parts

KEY = "$secret"
MARK = b'"$secret"'
"""What the JSON of every reference contains."""


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a secret is: ``env:NAME`` or ``file:/path``."""

    ref: str = msgspec.field(name=KEY)


def is_forged(value: object, raw: bytes) -> bool:
    """Whether the JSON of a value has references that the value itself does not have."""
    return _written(msgspec.json.decode(raw)) > _meant(value)


def _written(value: Any) -> int:
    """How many objects look like references, at any depth."""
    if isinstance(value, dict):
        return (KEY in value) + sum(map(_written, value.values()))
    return sum(map(_written, value)) if isinstance(value, list) else 0


def _meant(value: object) -> int:
    """How many references there are in a value that was encoded, so it does not contain itself."""
    if isinstance(value, Reference):
        return 1
    return sum(_meant(part) for _, part in parts(value))
