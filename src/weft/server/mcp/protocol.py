"""The MCP server of an app: what each request does. The transports are in ``sessions`` and ``stdio``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from weft.errors import NotFound, WeftError
from weft.server.mcp import resources
from weft.server.mcp.exchange import Context, McpExchange, ToolRequest, refusal_as_tool_result
from weft.server.mcp.offer import offered_workflows
from weft.server.mcp.run_tools import RUN_TOOLS, ServedTool, workflow_tool
from weft.server.mcp.subscriptions import listen
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall

INSTRUCTIONS = (
    "Each tool of a workflow starts a durable run: it goes on whatever happens to this connection. "
    "A call that takes longer than 20 seconds returns a run_id; ask for the result with run_result. "
    "Give a run_id of your own to make repeated calls safe."
)
CallOf = Callable[[Context], ApiCall]


class McpProtocol:
    """Answers the requests of MCP clients. ``call_of`` says who calls; tools in ``hidden`` are not offered."""

    def __init__(self, call_of: CallOf, hidden: frozenset[str] = frozenset()) -> None:
        self._call_of = call_of
        self._hidden = hidden

    def server(self) -> Server[Any]:
        """Return a server of the package ``mcp`` that answers with this."""
        return Server(
            "weft",
            version=version("weft"),
            title="Weft",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_subscriptions_listen=self.listen,
        )

    def _exchange(self, context: Context) -> McpExchange:
        return McpExchange(self._call_of(context), context)

    def _tools(self, exchange: McpExchange) -> dict[str, ServedTool]:
        """Return the tools that a caller may use, by name."""
        own = {one.tool.name: one for one in RUN_TOOLS if one.tool.name not in self._hidden}
        offered = offered_workflows(exchange.call.services.hosted)
        found = {name: workflow_tool(one) for name, one in offered.items()} | own
        return {name: one for name, one in found.items() if exchange.call.identity.may(one.scope)}

    async def list_tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return the tools that the caller may use."""
        try:
            found = self._tools(self._exchange(context))
        except WeftError as error:
            raise MCPError(INVALID_PARAMS, f"{error.message} {error.hint}".strip()) from None
        return ListToolsResult(tools=[one.tool for one in found.values()])

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Call a tool. What goes wrong is told to the model as its result."""
        exchange = self._exchange(context)
        try:
            exchange.call.hosting()
            tool = self._tools(exchange).get(params.name)
            if tool is None:
                raise MCPError(INVALID_PARAMS, f"There is no tool {params.name[:100]!r}, or your key may not use it.")
            return await tool.perform(ToolRequest(exchange, params))
        except (WeftError, RequestRefused) as error:
            return refusal_as_tool_result(error, exchange.call.identity.tenant)

    async def list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return the offered workflows, and the newest runs that the caller started."""
        return ListResourcesResult(resources=await resources.listed(self._exchange(context)))

    async def list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Return how the addresses of resources are made."""
        return ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a resource."""
        try:
            return await resources.read(self._exchange(context), params.uri)
        except NotFound as error:
            raise MCPError(INVALID_PARAMS, error.message, {"uri": params.uri}) from None
        except WeftError as error:
            raise MCPError(INVALID_PARAMS, f"{error.message} {error.hint}".strip()) from None

    async def listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Tell the client about changes of resources until it goes away."""
        return await listen(self._exchange(context), context, params)
