"""The index of blobs whose content is outside the database."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import Millis
from weft.stores.postgres.blobs import START_COUNTING
from weft.stores.postgres.pool import Pool, fetch, fetch_value

_TOUCH = (
    "INSERT INTO blobs (hash) VALUES ($1) "
    "ON CONFLICT (hash) DO UPDATE SET touched = NULL WHERE blobs.doomed IS NULL RETURNING 1"
)
_MARKED_FOR = "SELECT extract(epoch FROM clock_timestamp() - doomed) FROM blobs WHERE hash = $1 AND doomed IS NOT NULL"
_MARK = (
    "UPDATE blobs SET doomed = clock_timestamp() WHERE (doomed IS NULL AND touched <= $1 "
    "AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.hash = blobs.hash)) "
    "OR doomed <= clock_timestamp() - $2::float8 * interval '1 second' RETURNING hash"
)


class PostgresIndex:
    """The index of blobs in Postgres."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def touch(self, digest: str) -> float | None:
        while not await fetch_value(self._pool, _TOUCH, digest):
            seconds = await fetch_value(self._pool, _MARKED_FOR, digest)
            if seconds is not None:
                return float(seconds)
            # The blob was deleted between the two queries, so touch it again.
        return None

    async def data(self, digest: str) -> bytes | None:
        data: bytes | None = await fetch_value(self._pool, "SELECT data FROM blobs WHERE hash = $1", digest)
        return data

    async def mark_unused(self, *, now: Millis, untouched_ms: int, abandoned_seconds: float) -> Sequence[str]:
        await fetch(self._pool, START_COUNTING, now)
        rows = await fetch(self._pool, _MARK, now - untouched_ms, abandoned_seconds)
        return [str(digest) for (digest,) in rows]

    async def remove(self, digest: str) -> None:
        await fetch(self._pool, "DELETE FROM blobs WHERE hash = $1 AND doomed IS NOT NULL", digest)
