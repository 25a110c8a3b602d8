"""Memos: results of steps that are reused for equal work."""

from __future__ import annotations

from typing import Protocol

import msgspec

from weft.core.ids import Millis, RunId


class Memo(msgspec.Struct, frozen=True, kw_only=True):
    """A committed result that is reused for equal work, with the run and time it comes from."""

    key: str
    output: bytes
    """The output as in the log: JSON, or a reference to a blob."""
    run: RunId
    at: Millis
    until: Millis | None = None
    """When the memo expires; None if it never does."""


class Memos(Protocol):
    """Memos by key. This is a cache: losing one only costs time."""

    async def get(self, key: str, *, now: Millis) -> Memo | None:
        """Return the memo with this key, unless it has expired."""
        ...

    async def put(self, memo: Memo) -> None:
        """Store a memo. Replaces an earlier memo with the same key."""
        ...
