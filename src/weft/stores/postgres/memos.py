"""Memos in Postgres."""

from __future__ import annotations

from weft.core.ids import Millis, RunId
from weft.ports.memos import Memo
from weft.stores.postgres.pool import Pool, fetch, fetch_row

_GET = "SELECT output, run, at, until FROM memos WHERE key = $1 AND (until IS NULL OR until > $2)"
_PUT = (
    "INSERT INTO memos (key, output, run, at, until) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (key) DO UPDATE SET output = $2, run = $3, at = $4, until = $5"
)


class PostgresMemos:
    """The memos of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get(self, key: str, *, now: Millis) -> Memo | None:
        row = await fetch_row(self._pool, _GET, key, now)
        if row is None:
            return None
        output, run, at, until = row
        return Memo(key=key, output=output.encode(), run=RunId(run), at=at, until=until)

    async def put(self, memo: Memo) -> None:
        await fetch(self._pool, _PUT, memo.key, memo.output.decode(), memo.run, memo.at, memo.until)
