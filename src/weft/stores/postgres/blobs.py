"""Store blobs in the database itself."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

import asyncio
import hashlib

from weft.core.ids import Millis
from weft.core.values import blobs_in
from weft.errors import Corrupt, NotFound
from weft.stores.postgres.pool import Pool, fetch, fetch_value

SMALL_BYTES_MAX = 64 * 1024
"""Larger blobs are hashed on another thread."""

_TOUCH = "UPDATE blobs SET touched = NULL WHERE hash = $1 RETURNING 1"
LINK = "INSERT INTO blob_links (parent, child) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING"
_PUT = (
    f"WITH linked AS ({LINK}) "
    "INSERT INTO blobs (hash, data) VALUES ($1, $3) ON CONFLICT (hash) DO UPDATE SET touched = NULL"
)
START_COUNTING = "UPDATE blobs SET touched = $1 WHERE touched IS NULL"
_SWEEP = (
    "WITH unused AS MATERIALIZED (SELECT * FROM unused_blobs($1, $2) AS u (hash)), "
    "gone AS (DELETE FROM blobs b USING unused u WHERE b.hash = u.hash AND b.touched <= $1 RETURNING b.hash), "
    "unlinked AS (DELETE FROM blob_links l USING gone g WHERE l.parent = g.hash) SELECT count(*) FROM gone"
)


class PostgresBlobs:
    """The blobs of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(self, data: bytes) -> str:
        digest = await blob_digest(data)
        # Content that is already stored is not sent again.
        if not await fetch_value(self._pool, _TOUCH, digest):
            await fetch(self._pool, _PUT, digest, list(set(blobs_in(data))), data)
        return digest

    async def get(self, digest: str) -> bytes:
        data: bytes | None = await fetch_value(self._pool, "SELECT data FROM blobs WHERE hash = $1", digest)
        if data is None:
            raise NotFound(f"No blob has the digest {digest}.", digest=digest)
        if await blob_digest(data) != digest:
            raise Corrupt(f"The content of blob {digest} does not match its digest.", digest=digest)
        return data

    async def sweep(self, *, now: Millis, untouched_ms: int, limit: int = 500) -> int:
        """Delete unused blobs. Their time counts from the first sweep after ``put``, which has no clock."""
        await fetch(self._pool, START_COUNTING, now)
        return int(await fetch_value(self._pool, _SWEEP, now - untouched_ms, limit))


async def blob_digest(data: bytes) -> str:
    """Return the SHA-256 of content, in hexadecimal."""
    if len(data) <= SMALL_BYTES_MAX:
        return hashlib.sha256(data).hexdigest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
