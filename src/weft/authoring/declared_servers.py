"""The MCP servers that the agents of an app and its groups name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weft.errors import NameTaken

if TYPE_CHECKING:
    from weft.agents.mcp.servers import McpServer


class DeclaredServers:
    """The servers of one group or app, by name. Names have no prefix: a server is the same for all groups."""

    def __init__(self) -> None:
        self._own: dict[str, McpServer] = {}
        self._parent: DeclaredServers | None = None

    def add(self, server: McpServer) -> None:
        """Add a server. Raises NameTaken if another one has its name."""
        if self._own.setdefault(server.name, server).options != server.options:
            raise NameTaken(
                f'Two MCP servers are called "{server.name}".', hint="Rename one: tools are named after their server."
            )
        if self._parent is not None:
            self._parent.add(server)

    def include(self, other: DeclaredServers) -> None:
        """Include the servers of a group, also those that it adds later. Raises NameTaken."""
        for server in other._own.values():
            self.add(server)
        other._parent = self

    @property
    def by_name(self) -> Mapping[str, McpServer]:
        """The servers by their names."""
        return self._own
