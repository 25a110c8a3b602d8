"""Saved views in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from weft.ports.saved_views import SavedView
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_PUT = "INSERT OR REPLACE INTO saved_views (tenant, name, query, saved_by, saved_at) VALUES (?, ?, ?, ?, ?)"
_LIST = "SELECT name, query, saved_by, saved_at FROM saved_views WHERE tenant = ? ORDER BY name"


class SqliteSavedViews:
    """The saved views of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, view: SavedView) -> None:
        values = (view.tenant, view.name, view.query, view.saved_by, view.saved_at)
        await self._writer.small(lambda connection: connection.execute(_PUT, values))

    async def list(self, tenant: str) -> Sequence[SavedView]:
        def work(connection: apsw.Connection) -> list[SavedView]:
            return [
                SavedView(tenant=tenant, name=name, query=query, saved_by=saved_by, saved_at=saved_at)
                for name, query, saved_by, saved_at in connection.execute(_LIST, (tenant,))
            ]

        return await self._reader.read_in_thread(work)

    async def remove(self, tenant: str, name: str) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute("DELETE FROM saved_views WHERE tenant = ? AND name = ?", (tenant, name))
            return bool(connection.changes())

        return await self._writer.small(work)
