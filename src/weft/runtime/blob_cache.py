"""Blobs that runs in memory are about to need, bounded by bytes, oldest out first."""

from __future__ import annotations

from collections import OrderedDict


class BlobCache:
    """Content never changes under its digest, so an entry is right or absent."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._blobs: OrderedDict[str, bytes] = OrderedDict()

    def add(self, digest: str, data: bytes) -> None:
        """Keep it; at least the newest stays, however large."""
        if digest in self._blobs:
            self._blobs.move_to_end(digest)
            return
        self._blobs[digest] = data
        self._bytes += len(data)
        while self._bytes > self._bytes_max and len(self._blobs) > 1:
            _, old = self._blobs.popitem(last=False)
            self._bytes -= len(old)

    def get(self, digest: str) -> bytes | None:
        return self._blobs.get(digest)
