"""Store blobs with their content in one place and their index in another, so that a crash in between is harmless.

A put writes the index first, then the content; nobody refers to the blob before both are written. A sweep marks a blob
(a put of the same blob now waits), deletes its content, and then deletes the row.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Protocol

from weft.core.ids import Millis
from weft.core.values import blobs_in
from weft.errors import Corrupt, NotFound
from weft.stores.blobs.content import BlobContent

POLL_SECONDS = 0.1
ABANDONED_SECONDS = 120.0
"""A deletion that takes longer than this counts as abandoned, because no request to the content takes this long."""


class Index(Protocol):
    """The index of blobs. It says which blobs exist, and since when each has been unused."""

    async def touch(self, digest: str, links: Sequence[str] = ()) -> float | None:
        """List a blob as touched now, with the blobs to which it refers.

        If it is being deleted, leave it and return for how many seconds it has been.
        """
        ...

    async def data(self, digest: str) -> bytes | None:
        """Return content that is still in the database, from before content was kept elsewhere."""
        ...

    async def mark_unused(
        self, *, now: Millis, untouched_ms: int, abandoned_seconds: float, limit: int = 500
    ) -> Sequence[str]:
        """Mark up to ``limit`` unused blobs. Returns them, and those whose deletion another host has abandoned."""
        ...

    async def remove(self, digest: str) -> None:
        """Remove the row of a blob that was marked for deletion."""
        ...


class IndexedBlobs:
    """Blobs, stored in an index and a separate place for content."""

    def __init__(self, index: Index, content: BlobContent) -> None:
        self._index = index
        self._content = content

    async def put(self, data: bytes) -> str:
        digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        links = list(set(blobs_in(data)))
        while (deleting_seconds := await self._index.touch(digest, links)) is not None:
            if deleting_seconds >= ABANDONED_SECONDS:
                await self._delete_content(digest)
            else:
                await asyncio.sleep(POLL_SECONDS)
        if not await self._content.has(digest):
            await self._content.write(digest, data)
        return digest

    async def get(self, digest: str) -> bytes:
        data = await self._content.read(digest)
        if data is None:
            data = await self._index.data(digest)
        if data is None:
            raise NotFound(f"No blob has the digest {digest}.", digest=digest)
        actual = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
        if actual != digest:
            raise Corrupt(f"The content of blob {digest} does not match its digest.", digest=digest)
        return data

    async def sweep(self, *, now: Millis, untouched_ms: int, limit: int = 500) -> int:
        marked = await self._index.mark_unused(
            now=now, untouched_ms=untouched_ms, abandoned_seconds=ABANDONED_SECONDS, limit=limit
        )
        for digest in marked:
            await self._delete_content(digest)
        return len(marked)

    async def _delete_content(self, digest: str) -> None:
        await self._content.delete(digest)
        await self._index.remove(digest)
