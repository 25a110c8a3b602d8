"""Blobs with their content in one place and their index in another, written so that a crash in between is harmless.

A put writes the index first, then the content; nobody refers to the blob before both are written. A sweep marks a blob
(a put of the same blob now waits), deletes its content, and then deletes the row.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Protocol

from weft.core.ids import Millis
from weft.errors import Corrupt, NotFound
from weft.stores.blobs.content import BlobContent

PAUSE_SECONDS = 0.1
ABANDONED_SECONDS = 120.0
"""A deletion that takes longer than this was abandoned: no request to the content lasts so long."""


class Index(Protocol):
    """The index of blobs: which exist, and since when each is unused."""

    async def touch(self, digest: str) -> float | None:
        """List it as just touched. Seconds: it is being deleted, and was not touched."""
        ...

    async def data(self, digest: str) -> bytes | None:
        """Return content that is still in the database, from before it was kept elsewhere."""
        ...

    async def doom(self, *, now: Millis, untouched_ms: int, abandoned_seconds: float) -> Sequence[str]:
        """Mark what may go; those, and what others marked and left."""
        ...

    async def strike(self, digest: str) -> None:
        """Remove a marked row."""
        ...


class IndexedBlobs:
    """Blobs over an index and a place for content."""

    def __init__(self, index: Index, content: BlobContent) -> None:
        self._index = index
        self._content = content

    async def put(self, data: bytes) -> str:
        digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        while (doomed_seconds := await self._index.touch(digest)) is not None:
            if doomed_seconds >= ABANDONED_SECONDS:
                await self._delete(digest)
            else:
                await asyncio.sleep(PAUSE_SECONDS)
        if not await self._content.has(digest):
            await self._content.write(digest, data)
        return digest

    async def get(self, digest: str) -> bytes:
        data = await self._content.read(digest)
        if data is None:
            data = await self._index.data(digest)
        if data is None:
            raise NotFound(f"No blob has the digest {digest}.", digest=digest)
        found = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        if found != digest:
            raise Corrupt(f"The content of blob {digest} does not match its name.", digest=digest)
        return data

    async def sweep(self, *, now: Millis, untouched_ms: int) -> int:
        doomed = await self._index.doom(now=now, untouched_ms=untouched_ms, abandoned_seconds=ABANDONED_SECONDS)
        for digest in doomed:
            await self._delete(digest)
        return len(doomed)

    async def _delete(self, digest: str) -> None:
        await self._content.delete(digest)
        await self._index.strike(digest)
