"""Blobs in memory."""

from __future__ import annotations

import hashlib

from weft.core.ids import Millis
from weft.errors import Corrupt, NotFound
from weft.stores.memory.content import MemoryContent, StoredBlob


class MemoryBlobs:
    """The blobs of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._content.blobs.setdefault(digest, StoredBlob(bytes(data))).touched = None
        return digest

    async def get(self, digest: str) -> bytes:
        blob = self._content.blobs.get(digest)
        if blob is None:
            raise NotFound(f"No blob has the digest {digest}.", digest=digest)
        if hashlib.sha256(blob.data).hexdigest() != digest:
            raise Corrupt(f"The content of blob {digest} does not match its digest.", digest=digest)
        return blob.data

    async def sweep(self, *, now: Millis, untouched_ms: int) -> int:
        """Delete unused blobs. Their time counts from the first sweep after ``put``, which has no clock."""
        unused = []
        for digest, blob in self._content.blobs.items():
            if blob.touched is None:
                blob.touched = now
            if digest not in self._content.refs and now - blob.touched >= untouched_ms:
                unused.append(digest)
        for digest in unused:
            del self._content.blobs[digest]
        return len(unused)
