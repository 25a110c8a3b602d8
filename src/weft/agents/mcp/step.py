"""The built-in step ``weft.mcp``: calls a tool of an MCP server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from weft.agents.mcp.failures import ToolFailed, ToolUnavailable
from weft.agents.mcp.servers import McpServer
from weft.agents.tools.built_in import unknown_tool
from weft.core.findings import did_you_mean
from weft.core.values import encode
from weft.errors import BadValue, UsageError
from weft.ports.tool_pins import ToolPins
from weft.steps.strangers import encode_answer
from weft.steps.task import MCP, Executor

ARGUMENTS_BYTES_MAX = 64 * 1024


class CallMcpTool(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the step. ``answers`` and ``state`` go on with a call that asked a person something."""

    server: str
    tool: str
    arguments: dict[str, Any] = {}
    answers: dict[str, Any] | None = None
    """By question, ``{"action": "accept", "content": {…}}``, or another action without content."""
    state: str | None = None
    rounds: int = 0
    """How often the call has asked before."""


_decode_input = msgspec.json.Decoder(CallMcpTool).decode


class McpStep:
    """Calls tools of the MCP servers that a program names."""

    def __init__(
        self,
        servers: Callable[[], Mapping[str, McpServer]],
        pins: ToolPins,
        keep: Callable[[bytes], Awaitable[str]],
    ) -> None:
        """``keep`` stores a blob and returns its digest."""
        self.name = MCP
        self._servers = servers
        self._pins = pins
        self._keep = keep

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        """Call the tool. Raises ToolFailed, ToolUnavailable, Refused, UsageError."""
        called = _read_input(given)
        server = self._server(called.server)
        found = await server.accepted_tool(self._pins, called.tool)
        if found is None:
            raise unknown_tool(f"{called.server}__{called.tool}", [])
        from mcp_types import CallToolRequestParams, InputRequiredResult  # noqa: PLC0415

        from weft.agents.mcp.results import mcp_tool_result, question_of  # noqa: PLC0415 - imports the package mcp

        params = CallToolRequestParams.model_validate(
            {
                "name": called.tool,
                "arguments": called.arguments,
                "inputResponses": called.answers,
                "requestState": called.state,
            }
        )
        try:
            answer = await server.call(params)
        except ToolFailed as error:
            if not error.is_unreadable:
                raise
            told = f"{error.message} The call was made; do not repeat it because of that."
            return encode({"unreadable": told})
        if isinstance(answer, InputRequiredResult):
            value: Any = question_of(server.name, called.tool, answer)
        else:
            value = await mcp_tool_result(server.name, found, answer, self._keep)
        return encode_answer(value, json.dumps(value).encode())

    def _server(self, name: str) -> McpServer:
        servers = self._servers()
        if name not in servers:
            near = did_you_mean(name, list(servers))
            raise UsageError(
                f'There is no MCP server "{name}" here.{f" {near}" if near else ""}',
                hint="Import the file that names it with weft.mcp.",
                code="tool.unknown",
            )
        return servers[name]

    def is_final(self, error: BaseException) -> bool:
        """Return whether calling again cannot help."""
        return not isinstance(error, ToolUnavailable)


def _read_input(given: bytes) -> CallMcpTool:
    try:
        called = _decode_input(given)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadValue(f"{MCP} got no valid call: {error}.", code="value.wrong_type") from error
    if len(msgspec.json.encode(called.arguments)) > ARGUMENTS_BYTES_MAX:
        raise ToolFailed(f"The arguments of {called.tool} have more than {ARGUMENTS_BYTES_MAX:,} bytes.")
    return called
