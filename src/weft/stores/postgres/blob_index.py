"""The index of blobs whose content is outside the database."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import Millis
from weft.stores.postgres.blobs import LINK, START_COUNTING
from weft.stores.postgres.pool import Pool, fetch, fetch_value

_TOUCH = (
    f"WITH linked AS ({LINK}) INSERT INTO blobs (hash) VALUES ($1) "
    "ON CONFLICT (hash) DO UPDATE SET touched = NULL WHERE blobs.doomed IS NULL RETURNING 1"
)
_MARKED_FOR = "SELECT extract(epoch FROM clock_timestamp() - doomed) FROM blobs WHERE hash = $1 AND doomed IS NOT NULL"
_MARK = (
    "UPDATE blobs SET doomed = clock_timestamp() "
    "WHERE (doomed IS NULL AND touched <= $1 AND hash IN (SELECT * FROM unused_blobs($1, $3))) "
    "OR doomed <= clock_timestamp() - $2::float8 * interval '1 second' RETURNING hash"
)

_REMOVE = (
    "WITH gone AS (DELETE FROM blobs WHERE hash = $1 AND doomed IS NOT NULL RETURNING hash) "
    "DELETE FROM blob_links l USING gone g WHERE l.parent = g.hash"
)


class PostgresIndex:
    """The index of blobs in Postgres."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def touch(self, digest: str, links: Sequence[str] = ()) -> float | None:
        while not await fetch_value(self._pool, _TOUCH, digest, list(links)):
            seconds = await fetch_value(self._pool, _MARKED_FOR, digest)
            if seconds is not None:
                return float(seconds)
            # The blob was deleted between the two queries, so touch it again.
        return None

    async def data(self, digest: str) -> bytes | None:
        data: bytes | None = await fetch_value(self._pool, "SELECT data FROM blobs WHERE hash = $1", digest)
        return data

    async def mark_unused(
        self, *, now: Millis, untouched_ms: int, abandoned_seconds: float, limit: int = 500
    ) -> Sequence[str]:
        await fetch(self._pool, START_COUNTING, now)
        rows = await fetch(self._pool, _MARK, now - untouched_ms, abandoned_seconds, limit)
        return [str(digest) for (digest,) in rows]

    async def remove(self, digest: str) -> None:
        await fetch(self._pool, _REMOVE, digest)
