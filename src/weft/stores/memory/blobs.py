"""Blobs in memory."""

from __future__ import annotations

import hashlib

from weft.core.ids import Millis
from weft.core.values import blobs_in
from weft.errors import Corrupt, NotFound
from weft.stores.memory.content import MemoryContent, StoredBlob


class MemoryBlobs:
    """The blobs of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        blob = self._content.blobs.get(digest)
        if blob is None:
            blob = self._content.blobs[digest] = StoredBlob(bytes(data), blobs_in(data))
        blob.touched = None
        return digest

    async def get(self, digest: str) -> bytes:
        blob = self._content.blobs.get(digest)
        if blob is None:
            raise NotFound(f"No blob has the digest {digest}.", digest=digest)
        if hashlib.sha256(blob.data).hexdigest() != digest:
            raise Corrupt(f"The content of blob {digest} does not match its digest.", digest=digest)
        return blob.data

    async def sweep(self, *, now: Millis, untouched_ms: int, limit: int = 500) -> int:
        """Delete unused blobs. Their time counts from the first sweep after ``put``, which has no clock."""
        unused = []
        used = self._used_digests()
        for digest, blob in self._content.blobs.items():
            if blob.touched is None:
                blob.touched = now
            if digest not in used and now - blob.touched >= untouched_ms:
                unused.append(digest)
        for digest in unused[:limit]:
            del self._content.blobs[digest]
        return len(unused[:limit])

    def _used_digests(self) -> set[str]:
        """Return the blobs to which runs, other blobs, mail and memos refer."""
        content = self._content
        used = set(content.refs)
        used.update(digest for blob in content.blobs.values() for digest in blob.links)
        for run in content.runs.values():
            used.update(digest for mail in run.inbox.values() for digest in blobs_in(mail.body))
        used.update(digest for memo in content.memos.values() for digest in blobs_in(memo.output))
        return used
