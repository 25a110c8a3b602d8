"""Tools of MCP servers that changed or are new: show what they are now, and accept it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from weft.cli.operations import remote_of
from weft.cli.output import console, print_json, print_table
from weft.runtime.service import RunService
from weft.server.endpoints.tool_servers import AcceptedTools, WithheldTool, accept_tools, withheld_tool

SHOWN_CHARS = 80


async def withheld_tools(service: RunService, server: str = "") -> list[WithheldTool]:
    """Return the tools of a server, or of all servers, that wait for somebody to accept them."""
    return [withheld_tool(pin) for pin in await service.store.tool_pins.list(server) if pin.seen]


async def accept_server(service: RunService, server: str, *, by: str, json: bool) -> bool:
    """Accept the tools of a server as they were seen last, and print them. Returns whether there is such a server.

    Raises NotFound if the server has nothing to accept.
    """
    if not await service.store.tool_pins.list(server):
        return False
    remote = remote_of(service)
    if remote is None:
        found = await accept_tools(service, server, by=by)
    else:
        found = await remote.post(f"tool-servers/{quote(server, safe='')}/accept", {"by": by}, AcceptedTools)
    if json:
        print_json(found)
    else:
        for one in found.accepted:
            console().print(f"{one.server}__{one.tool} is accepted.")
    return True


def print_withheld(tools: Sequence[WithheldTool]) -> None:
    """Print what has changed, and how to accept it."""
    rows = [
        (tool.server, tool.tool, "new" if tool.is_new else "changed", _description(tool.before), _description(tool.now))
        for tool in tools
    ]
    print_table(console(), ("SERVER", "TOOL", "IS", "BEFORE", "NOW"), rows)
    for server in sorted({tool.server for tool in tools}):
        console().print(f"Accept them: weft tools accept {server}")


def _description(definition: str) -> str:
    """Return the description of a definition; other changes are shown by ``--json``."""
    if not definition:
        return ""
    text = str(msgspec.json.decode(definition).get("description", ""))
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
