"""Tools of MCP servers that changed or are new: accept them as they were seen last."""

from __future__ import annotations

import msgspec

from weft.core.ids import Millis
from weft.errors import NotFound
from weft.ports.tool_pins import ToolPin
from weft.runtime.service import RunService
from weft.server import views
from weft.server.request import ApiCall


class WithheldTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that agents may not call, because nobody accepted what it is now."""

    server: str
    tool: str
    is_new: bool
    before: str
    """Its accepted definition as JSON; empty if it is new."""
    now: str


class AcceptedTools(msgspec.Struct, frozen=True):
    """The tools of a server that were accepted now."""

    accepted: list[WithheldTool]


class AcceptServerForm(views.Form, frozen=True, kw_only=True):
    """Who accepts the tools of a server."""

    by: views.Text = ""
    """Ignored if the request has an API key, which says it."""


async def accept_tool_server(call: ApiCall) -> AcceptedTools:
    """Let agents call the tools of an MCP server as they were seen last. Raises NotFound."""
    form = call.body_as(AcceptServerForm)
    return await accept_tools(call.service, call.parameters["name"], by=call.by(form.by))


async def accept_tools(service: RunService, server: str, *, by: str) -> AcceptedTools:
    """Accept the tools of a server as they were seen last. Raises NotFound if there is nothing to accept."""
    pins = service.store.tool_pins
    waiting = [pin for pin in await pins.list(server) if pin.seen]
    if not waiting:
        raise NotFound(f"The MCP server {server} has no tool that waits to be accepted.", hint="weft tools list")
    now = Millis(service.clock.now_ms())
    accepted = [pin for pin in waiting if await pins.accept(msgspec.structs.replace(pin, by=by, at=now))]
    return AcceptedTools([withheld_tool(pin) for pin in accepted])


def withheld_tool(pin: ToolPin) -> WithheldTool:
    """Return a tool that waits to be accepted, as it was and as it is."""
    return WithheldTool(server=pin.server, tool=pin.tool, is_new=not pin.accepted, before=pin.accepted, now=pin.seen)
