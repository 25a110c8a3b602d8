"""Memos: committed successes that answer for equal work."""

from __future__ import annotations

from typing import Protocol

import msgspec

from weft.core.ids import Millis, RunId


class Memo(msgspec.Struct, frozen=True, kw_only=True):
    """A committed success that answers for equal work: what came out, and where and when that was."""

    key: str
    output: bytes
    """As the log has it: JSON, or a reference to a blob."""
    run: RunId
    at: Millis
    until: Millis | None = None
    """From this moment on it answers no more; None: it always does."""


class Memos(Protocol):
    """Successes by what was asked. A cache: losing one costs time and nothing else."""

    async def get(self, key: str, *, now: Millis) -> Memo | None:
        """The one of this key, unless its time is over."""
        ...

    async def put(self, memo: Memo) -> None:
        """Keep it; one that was there under its key is replaced."""
        ...
