"""The definitions of tools of MCP servers that were accepted, and those that the servers have now instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Millis


class ToolPin(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of a server. Definitions are JSON."""

    server: str
    tool: str
    accepted: str = ""
    """The definition that was accepted; empty if the tool is new and nobody accepted it."""
    seen: str = ""
    """Another definition that the server has now; empty if it has the accepted one."""
    by: str = ""
    """Who accepted it; empty if it was accepted because the server was new."""
    at: Millis
    """When it was accepted or, if it never was, seen first."""


class ToolPins(Protocol):
    """The pinned tools of all MCP servers."""

    async def list(self, server: str = "") -> Sequence[ToolPin]:
        """Return the tools of a server, or of all servers, sorted by server and name."""
        ...

    async def begin(self, pins: Sequence[ToolPin]) -> bool:
        """Pin the first tools of a server. Returns False, and does nothing, if it has tools already."""
        ...

    async def note(self, pin: ToolPin) -> None:
        """Note what a server has now: ``seen`` of this tool. Adds the tool if it is new."""
        ...

    async def accept(self, pin: ToolPin) -> bool:
        """Accept what was seen. Returns False, and does nothing, if something else is seen by now."""
        ...
