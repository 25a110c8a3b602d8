"""References to secrets inside values. A reference says where a secret is and never contains it. Pure.

A user's own JSON could look like a reference. So ``values.encode`` refuses a plain object with the key ``$secret``.
Only a ``Reference`` is written as a reference, and JSON is read as a reference only where the declared type is one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.offences import parts

KEY = "$secret"
MARK = b'"$secret"'
"""A part of the JSON of every reference."""


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of a secret: ``env:NAME`` or ``file:/path``."""

    ref: str = msgspec.field(name=KEY)


def is_forged(value: object, raw: bytes) -> bool:
    """Return whether the JSON of a value has references that the value itself does not have."""
    return _written(msgspec.json.decode(raw)) > _meant(value)


def _written(value: Any) -> int:
    """Count the objects that look like references, at any depth."""
    if isinstance(value, dict):
        return (KEY in value) + sum(map(_written, value.values()))
    return sum(map(_written, value)) if isinstance(value, list) else 0


def _meant(value: object) -> int:
    """Count the references in a value. It was encoded before, so it cannot contain itself."""
    if isinstance(value, Reference):
        return 1
    return sum(_meant(part) for _, part in parts(value))
