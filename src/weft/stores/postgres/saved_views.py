"""Saved views in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ports.saved_views import SavedView
from weft.stores.postgres.pool import Pool, fetch

_PUT = (
    "INSERT INTO saved_views (tenant, name, query, saved_by, saved_at) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (tenant, name) DO UPDATE SET query = $3, saved_by = $4, saved_at = $5"
)
_LIST = "SELECT tenant, name, query, saved_by, saved_at FROM saved_views WHERE tenant = $1 ORDER BY name"


class PostgresSavedViews:
    """The saved views of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(self, view: SavedView) -> None:
        await fetch(self._pool, _PUT, view.tenant, view.name, view.query, view.saved_by, view.saved_at)

    async def list(self, tenant: str) -> Sequence[SavedView]:
        return [SavedView(**dict(row)) for row in await fetch(self._pool, _LIST, tenant)]

    async def remove(self, tenant: str, name: str) -> bool:
        text = "DELETE FROM saved_views WHERE tenant = $1 AND name = $2 RETURNING name"
        return bool(await fetch(self._pool, text, tenant, name))
