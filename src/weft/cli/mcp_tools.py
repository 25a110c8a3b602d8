"""Tools of MCP servers that changed or are new: show what they are now, and accept it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.cli.output import console, print_json, print_table
from weft.core.ids import Millis
from weft.errors import NotFound
from weft.ports.tool_pins import ToolPin
from weft.runtime.service import RunService

SHOWN_CHARS = 80


class WithheldTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that agents may not call, because nobody accepted what it is now."""

    server: str
    tool: str
    is_new: bool
    before: str
    """Its accepted definition as JSON; empty if it is new."""
    now: str


async def withheld_tools(service: RunService, server: str = "") -> list[WithheldTool]:
    """Return the tools of a server, or of all servers, that wait for somebody to accept them."""
    return [_withheld(pin) for pin in await service.store.tool_pins.list(server) if pin.seen]


async def accept_server(service: RunService, server: str, *, by: str, json: bool) -> bool:
    """Accept the tools of a server as they were seen last, and print them. Returns whether there is such a server.

    Raises NotFound if the server has nothing to accept.
    """
    pins = service.store.tool_pins
    known = await pins.list(server)
    if not known:
        return False
    waiting = [pin for pin in known if pin.seen]
    if not waiting:
        raise NotFound(f"The MCP server {server} has no tool that waits to be accepted.", hint="weft tools list")
    now = Millis(service.clock.now_ms())
    accepted = [pin for pin in waiting if await pins.accept(msgspec.structs.replace(pin, by=by, at=now))]
    if json:
        print_json({"accepted": [_withheld(pin) for pin in accepted]})
    else:
        for pin in accepted:
            console().print(f"{pin.server}__{pin.tool} is accepted.")
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


def _withheld(pin: ToolPin) -> WithheldTool:
    return WithheldTool(server=pin.server, tool=pin.tool, is_new=not pin.accepted, before=pin.accepted, now=pin.seen)


def _description(definition: str) -> str:
    """Return the description of a definition; other changes are shown by ``--json``."""
    if not definition:
        return ""
    text = str(msgspec.json.decode(definition).get("description", ""))
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
