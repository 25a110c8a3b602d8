"""The protocol of a store for content."""

from __future__ import annotations

from typing import Protocol

from weft.core.ids import Millis

LINKS_MAX = 1_000
"""How many blobs are examined to find out whether a run refers to a blob through others."""


class Blobs(Protocol):
    """A store for content, by its SHA-256 in hexadecimal."""

    async def put(self, data: bytes) -> str:
        """Store content durably, mark it as touched now, and return its digest. Equal content is stored once."""
        ...

    async def get(self, digest: str) -> bytes:
        """Return the content. Raises NotFound, or Corrupt if it does not match its digest."""
        ...

    async def sweep(self, *, now: Millis, untouched_ms: int, limit: int = 500) -> int:
        """Delete up to ``limit`` blobs that nothing refers to and that were not touched for this long.

        Runs refer to blobs, and so do other blobs, mail and memos. Returns the number deleted.
        """
        ...
