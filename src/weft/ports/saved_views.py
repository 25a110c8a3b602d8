"""Filters of lists that people have saved for everybody in their tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Millis


class SavedView(msgspec.Struct, frozen=True, kw_only=True):
    """A saved filter. The operator of an installation is the tenant with the empty name."""

    tenant: str = ""
    name: str
    query: str
    """The filter as it is in the address of the list, such as ``status=failed&workflow=order``."""
    saved_by: str
    saved_at: Millis


class SavedViews(Protocol):
    """The saved filters of all tenants."""

    async def put(self, view: SavedView) -> None:
        """Save a view, in place of the one with its name."""
        ...

    async def list(self, tenant: str) -> Sequence[SavedView]:
        """Return the views of a tenant, by name."""
        ...

    async def remove(self, tenant: str, name: str) -> bool:
        """Remove a view. Returns False if there is none."""
        ...
