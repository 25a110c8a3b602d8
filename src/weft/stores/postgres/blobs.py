"""Store blobs in the database itself."""

from __future__ import annotations

import asyncio
import hashlib

from weft.core.ids import Millis
from weft.errors import Corrupt, NotFound
from weft.stores.postgres.pool import Pool, fetch, fetch_value

SMALL_BYTES_MAX = 64 * 1024
"""Larger blobs are hashed on another thread."""

_TOUCH = "UPDATE blobs SET touched = NULL WHERE hash = $1 RETURNING 1"
_PUT = "INSERT INTO blobs (hash, data) VALUES ($1, $2) ON CONFLICT (hash) DO UPDATE SET touched = NULL"
START_COUNTING = "UPDATE blobs SET touched = $1 WHERE touched IS NULL"
_SWEEP = (
    "WITH gone AS (DELETE FROM blobs WHERE touched <= $1 "
    "AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.hash = blobs.hash) RETURNING 1) SELECT count(*) FROM gone"
)


class PostgresBlobs:
    """The blobs of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(self, data: bytes) -> str:
        digest = await digest_of(data)
        # Content that is already stored is not sent again.
        if not await fetch_value(self._pool, _TOUCH, digest):
            await fetch(self._pool, _PUT, digest, data)
        return digest

    async def get(self, digest: str) -> bytes:
        data: bytes | None = await fetch_value(self._pool, "SELECT data FROM blobs WHERE hash = $1", digest)
        if data is None:
            raise NotFound(f"No blob has the digest {digest}.", digest=digest)
        if await digest_of(data) != digest:
            raise Corrupt(f"The content of blob {digest} does not match its digest.", digest=digest)
        return data

    async def sweep(self, *, now: Millis, untouched_ms: int) -> int:
        """Delete unused blobs. Their time counts from the first sweep after ``put``, which has no clock."""
        await fetch(self._pool, START_COUNTING, now)
        return int(await fetch_value(self._pool, _SWEEP, now - untouched_ms))


async def digest_of(data: bytes) -> str:
    """Return the SHA-256 of content, in hexadecimal."""
    if len(data) <= SMALL_BYTES_MAX:
        return hashlib.sha256(data).hexdigest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
