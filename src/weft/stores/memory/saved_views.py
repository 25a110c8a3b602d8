"""Saved views in memory."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ports.saved_views import SavedView
from weft.stores.memory.content import MemoryContent


class MemorySavedViews:
    """The saved views of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._views = content.saved_views

    async def put(self, view: SavedView) -> None:
        self._views[view.tenant, view.name] = view

    async def list(self, tenant: str) -> Sequence[SavedView]:
        return [view for key, view in sorted(self._views.items()) if key[0] == tenant]

    async def remove(self, tenant: str, name: str) -> bool:
        return self._views.pop((tenant, name), None) is not None
