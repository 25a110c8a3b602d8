"""Keep and load the values of runs. Small values are in the log, large ones are blobs that the log refers to.

A host has one ``ValueStore``, which also caches blobs, and one cache of decoded inputs for the runs in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from operator import itemgetter
from typing import Any

from msgspec import Raw

from weft.cache import BoundedCache
from weft.core import values
from weft.core.run.composites import size_of

OPENED_BYTES_MIN = 1024
"""Decoding a smaller value again costs less than caching it."""


def blob_cache(bytes_max: int) -> BoundedCache[str, bytes]:
    """Make a cache of blobs by digest. Content never changes, so entries never become outdated."""
    return BoundedCache(bytes_max, len)


class OpenedValues:
    """Decoded inputs of runs, bounded by the bytes of their JSON.

    A large input is not decoded again for every token that reads it. Readers must not change the decoded value.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._known: BoundedCache[int, tuple[Raw, Any, int]] = BoundedCache(bytes_max, itemgetter(2))
        """By identity of the raw value, which is kept too, so that no other object can get the same identity."""

    def recall(self, raw: Raw, read: Callable[[], Any]) -> Any:
        """Return the decoded value, from the cache or from ``read``."""
        known = self._known.get(id(raw))
        if known is not None:
            return known[1]
        value, size = read(), size_of(raw)
        if OPENED_BYTES_MIN <= size <= self._bytes_max:
            self._known.put(id(raw), (raw, value, size))
        return value


class ValueStore:
    """Keeps values and loads them again."""

    def __init__(
        self,
        put: Callable[[bytes], Awaitable[str]],
        get: Callable[[str], Awaitable[bytes]],
        cache: BoundedCache[str, bytes] | None = None,
    ) -> None:
        """``put`` and ``get`` store and load blobs, with the caller's own policy for retries."""
        self.put = put
        self._get = get
        self._cache = cache

    async def keep(self, raw: bytes) -> bytes:
        """Return a value for the log: the value itself, or a reference to a blob that is durable now."""
        sealed = values.seal_inline(raw)
        if sealed is not None:
            return sealed
        digest = await self.put(raw)
        if self._cache is not None:
            self._cache.put(digest, raw)
        return values.blob_ref(digest, len(raw))

    def hold(self, raw: bytes) -> tuple[str, bytes]:
        """Cache a large value and return its digest and the reference to it. The caller puts the blob later."""
        digest = hashlib.sha256(raw).hexdigest()
        if self._cache is not None:
            self._cache.put(digest, raw)
        return digest, values.blob_ref(digest, len(raw))

    async def load(self, raw: bytes) -> bytes:
        """Return the JSON of a value in the log: the value itself, or the blob that it refers to."""
        plain = values.inline_json(raw)
        if plain is not None:
            return plain
        return await self.blob(values.parse_ref(raw).digest)

    async def blob(self, digest: str) -> bytes:
        """Return a blob, and cache it."""
        found = self.cached(digest)
        if found is None:
            found = await self._get(digest)
            if self._cache is not None:
                self._cache.put(digest, found)
        return found

    def cached(self, digest: str) -> bytes | None:
        """Return a blob if it is in memory."""
        return self._cache.get(digest) if self._cache is not None else None
