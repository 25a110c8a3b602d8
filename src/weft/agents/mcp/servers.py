"""MCP servers as a program names them, and their connections: one for each event loop, made at first use."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from weft.agents.mcp.definitions import (
    McpDefinition,
    accepted_names,
    check_named,
    named_tools,
)
from weft.agents.mcp.failures import ToolUnavailable, tool_changed
from weft.agents.tools.spec import ToolSpec
from weft.core.events import Effect
from weft.extras import require
from weft.ports.store import Store
from weft.ports.tool_pins import ToolPins
from weft.steps.secrets import Secret

if TYPE_CHECKING:
    from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult

    from weft.agents.mcp.wire import McpWire

log = logging.getLogger("weft.mcp")


class McpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a program says about a server: where it is, which of its tools are offered, and what they do."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str | Secret] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str | Secret] = {}
    tools: tuple[str, ...] | None = None
    effects: Mapping[str, Effect] = {}
    timeout_ms: int = 60_000


class McpServer:
    """An MCP server whose tools agents may call. ``weft.mcp`` makes it; agents take it in ``tools=``."""

    def __init__(self, options: McpOptions) -> None:
        self.options = options
        self.name = options.name
        self._wires: WeakKeyDictionary[asyncio.AbstractEventLoop, McpWire] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<weft MCP server {self.name}>"

    @property
    def seconds(self) -> float:
        """How long one call may take."""
        return self.options.timeout_ms / 1000

    def effect_of(self, tool: str) -> Effect:
        """Return what a tool does, as the program says. What the server says about it counts for nothing."""
        found = [effect for glob, effect in self.options.effects.items() if fnmatchcase(tool, glob)]
        return found[0] if found else "irreversible"

    # --- connections ----------------------------------------------------------------------------------------------

    async def wire(self) -> McpWire:
        """Return the connection of this loop, made again if it has ended. Raises ToolUnavailable, MissingExtra."""
        require("mcp", f"The MCP server {self.name}")
        from weft.agents.mcp.wire import McpWire  # noqa: PLC0415 - slow to import, and only needed for a connection

        loop = asyncio.get_running_loop()
        wire = self._wires.get(loop)
        if wire is None or not wire.is_open:
            wire = self._wires[loop] = McpWire(self._address())
        await wire.connect()
        return wire

    def _address(self) -> Any:
        from weft.agents.mcp.wire import McpAddress  # noqa: PLC0415 - see above

        options = self.options
        return McpAddress(
            name=self.name,
            command=options.command,
            env=_revealed(options.env),
            cwd=options.cwd,
            url=options.url,
            headers=_revealed(options.headers),
        )

    async def close(self) -> None:
        """Close the connection of this loop, if there is one."""
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.close()

    async def call(self, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Call a tool. If nothing has reached the server, the connection is made again, once.

        Raises ToolUnavailable, ToolFailed.
        """
        try:
            return await (await self.wire()).call_tool(params, self.seconds)
        except ToolUnavailable as error:
            if error.in_doubt:
                raise
        await self.close()
        return await (await self.wire()).call_tool(params, self.seconds)

    # --- tools ----------------------------------------------------------------------------------------------------

    async def listed(self, *, fresh: bool) -> dict[str, McpDefinition]:
        """Return the tools of the server. Without ``fresh``, as it listed them last, unless it says that they changed.

        A connection that turns out to be dead is made again, once.
        """
        wire = await self.wire()
        with contextlib.suppress(ToolUnavailable):
            return await self._tools_of(wire, fresh=fresh)
        await self.close()
        return await self._tools_of(await self.wire(), fresh=fresh)

    async def _tools_of(self, wire: McpWire, *, fresh: bool) -> dict[str, McpDefinition]:
        async with wire.listing:
            if not fresh and not wire.changed:
                return wire.tools
            return await wire.list_tools(self.seconds)

    async def offered_tools(self, store: Store, tenant: str) -> Sequence[ToolSpec]:
        """Return the tools that the program names and that are as they were accepted. Others are withheld, and logged.

        Raises ToolUnavailable, ToolFailed, LimitExceeded.
        """
        listed = list((await self.listed(fresh=True)).values())
        accepted = await accepted_names(store.tool_pins, self.name, listed, _now_ms())
        named = named_tools(listed, self.options.tools)
        check_named(self.name, named)
        withheld = [one.name for one in named if one.name not in accepted]
        if withheld:
            error = tool_changed(self.name, withheld)
            log.warning("%s %s", error.message, error.hint)
        for one in named:
            if one.problem:
                log.warning("the tool %s of the MCP server %s is not offered: %s", one.name, self.name, one.problem)
        return [self._spec(one) for one in named if one.name in accepted and not one.problem]

    def _spec(self, tool: McpDefinition) -> ToolSpec:
        return ToolSpec(
            name=f"{self.name}__{tool.name}",
            description=tool.description,
            schema=tool.input,
            effect=self.effect_of(tool.name),
            kind="mcp",
            target=f"{self.name}/{tool.name}",
            given={"server": self.name, "tool": tool.name},
        )

    async def accepted_tool(self, pins: ToolPins, tool: str) -> McpDefinition | None:
        """Return a tool as the server has it now; None if it has none. Raises Refused if nobody accepted it."""
        found = (await self.listed(fresh=False)).get(tool)
        if found is None or not named_tools([found], self.options.tools):
            return None
        known = {pin.tool: pin.accepted for pin in await pins.list(self.name)}
        if known.get(tool) != found.text:
            listed = list((await self.listed(fresh=False)).values())
            if tool not in await accepted_names(pins, self.name, listed, _now_ms()):
                raise tool_changed(self.name, [tool])
        return found


def _revealed(given: Mapping[str, str | Secret]) -> dict[str, str]:
    return {name: value.reveal().strip() if isinstance(value, Secret) else value for name, value in given.items()}


def _now_ms() -> int:
    return round(time.time() * 1000)
