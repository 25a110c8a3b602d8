"""Values that strangers gave, made storable: what has happened must not be lost because of a character."""

from __future__ import annotations

from typing import Any


def without_nul(value: Any) -> Any:
    """Return a JSON value in which the character that no store keeps is replaced, in texts and keys."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, list):
        return [without_nul(one) for one in value]
    if isinstance(value, dict):
        return {without_nul(key): without_nul(one) for key, one in value.items()}
    return value
