"""Cursors of listings that are made here: opaque for clients, checked when they come back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from weft.errors import UsageError

T = TypeVar("T")


def pack(*parts: object) -> str:
    """A cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(parts)).decode().rstrip("=")


def unpack(cursor: str, of: type[T]) -> T:
    """What a cursor was made from. Raises UsageError."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        return msgspec.json.decode(raw, type=of)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise UsageError(f"{cursor[:40]!r} is no cursor of this listing.", hint="Begin again without one.") from None


def cut(items: Sequence[T], limit: int, cursor: str | None) -> tuple[list[T], str | None]:
    """A page of something that is in memory anyway."""
    (start,) = unpack(cursor, tuple[int]) if cursor is not None else (0,)
    start = max(0, min(start, len(items)))
    page = list(items[start : start + limit])
    more = start + len(page) < len(items)
    return page, pack(start + len(page)) if more else None
