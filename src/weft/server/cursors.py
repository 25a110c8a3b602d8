"""Cut lists into pages. Cursors are opaque to clients and checked when they come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from weft.errors import UsageError
from weft.tokens import InvalidToken, pack, unpack

T = TypeVar("T")


def cut_page(items: Sequence[T], limit: int, cursor: str | None) -> tuple[list[T], str | None]:
    """Return a page, and the cursor of the next one. Raises UsageError if the cursor is not from this list."""
    start = max(0, min(_start(cursor), len(items)))
    page = list(items[start : start + limit])
    more = start + len(page) < len(items)
    return page, pack((start + len(page),)) if more else None


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    try:
        (start,) = unpack(cursor, tuple[int])
    except InvalidToken:
        raise UsageError(
            f"{cursor[:40]!r} is not a cursor of this list.", hint="Begin again without a cursor."
        ) from None
    return start
