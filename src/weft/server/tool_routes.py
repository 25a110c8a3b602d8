"""The routes of the tools that were made of pipelines, of which every tenant has its own, and of MCP servers."""

from __future__ import annotations

from weft.errors import NameTaken, NotFound, UsageError
from weft.server import views
from weft.server.endpoints import tool_servers, tools
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

_TOOL = f"{API}/tools/{{name}}"

TOOLS = (
    ApiRoute(
        name="listTools",
        method="GET",
        path=f"{API}/tools",
        summary="The tools that were made of pipelines of agents, by name",
        endpoint=tools.list_tools,
        scope=AccessScope.READ,
        query=views.PageQuery,
        answer=tools.ToolList,
        errors=(UsageError,),
    ),
    ApiRoute(
        name="acceptTool",
        method="POST",
        path=f"{_TOOL}/accept",
        summary="Let agents find and call a tool",
        endpoint=tools.accept_tool,
        scope=AccessScope.OPERATE,
        body=tools.ToolChangeForm,
        answer=tools.ToolView,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="discardTool",
        method="POST",
        path=f"{_TOOL}/discard",
        summary="Let no agent find or call a tool any more",
        endpoint=tools.discard_tool,
        scope=AccessScope.OPERATE,
        body=tools.ToolChangeForm,
        answer=tools.ToolView,
        errors=(NotFound, UsageError),
    ),
    ApiRoute(
        name="renameTool",
        method="POST",
        path=f"{_TOOL}/rename",
        summary="Give a tool another name",
        endpoint=tools.rename_tool,
        scope=AccessScope.OPERATE,
        body=tools.ToolChangeForm,
        answer=tools.ToolView,
        errors=(NotFound, NameTaken, UsageError),
    ),
    ApiRoute(
        name="acceptToolServer",
        method="POST",
        path=f"{API}/tool-servers/{{name}}/accept",
        summary="Let agents call the tools of an MCP server as they were seen last",
        endpoint=tool_servers.accept_tool_server,
        scope=AccessScope.OPERATE,
        operator_only=True,
        body=tool_servers.AcceptServerForm,
        answer=tool_servers.AcceptedTools,
        errors=(NotFound, UsageError),
    ),
)
