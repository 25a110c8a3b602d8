"""The tools that were made of pipelines, through a server."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from weft.authoring.remote import Remote
from weft.server.endpoints.tools import ToolList, ToolView


class RemoteTools:
    """Lists and changes the stored tools of a server."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def list(self) -> Sequence[ToolView]:
        """Return all stored tools, by name."""
        found: list[ToolView] = []
        cursor: str | None = ""
        while cursor is not None:
            query = [("limit", "100"), *([("cursor", cursor)] if cursor else [])]
            page = await self._remote.get_view("tools", ToolList, query)
            found += page.tools
            cursor = page.cursor
        return found

    async def change(self, verb: str, name: str, to: str = "", *, by: str = "") -> ToolView:
        """Accept, discard or rename a tool. Raises NotFound, NameTaken."""
        body = {"to": to, "by": by} if to else {"by": by}
        return await self._remote.post(f"tools/{quote(name, safe='')}/{verb}", body, ToolView)
