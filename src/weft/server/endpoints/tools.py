"""The tools that were made of pipelines of agents: list them, accept, discard and rename them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.agents.toolbox.stored import StoredTool, ToolStatus
from weft.runtime.stored_tools import StoredTools
from weft.server import views
from weft.server.cursors import cut_page
from weft.server.request import ApiCall


class ToolView(msgspec.Struct, frozen=True, kw_only=True):
    """A stored tool. Agents find it with search_tools if its status is ``accepted``."""

    name: str
    status: ToolStatus
    description: str
    schema: dict[str, Any]
    pipeline: list[Any]
    """Its steps. A hole is ``{"$hole": name}``."""
    runs: list[str]
    """The runs in which it succeeded first."""
    made_at: views.Moment | None


class ToolList(msgspec.Struct, frozen=True):
    """A page of stored tools, by name."""

    tools: list[ToolView]
    cursor: str | None


class ToolChangeForm(views.Form, frozen=True, kw_only=True):
    """Who changes a tool, and its new name if it is renamed."""

    to: Annotated[str, Meta(max_length=200)] = ""
    by: views.Text = ""
    """Ignored if the request has an API key, which says it."""


async def list_tools(call: ApiCall) -> ToolList:
    """Return a page of the stored tools of the caller's tenant, by name."""
    query = call.query_as(views.PageQuery)
    found = sorted((await _stored(call).tools(call.identity.tenant)).values(), key=lambda tool: tool.name)
    page, cursor = cut_page(found, query.limit, query.cursor)
    return ToolList([tool_view(tool) for tool in page], cursor)


async def accept_tool(call: ApiCall) -> ToolView:
    """Let agents call a tool. Raises NotFound."""
    form = call.body_as(ToolChangeForm)
    tool = await _stored(call).accept(call.identity.tenant, call.parameters["name"], by=call.by(form.by))
    return tool_view(tool)


async def discard_tool(call: ApiCall) -> ToolView:
    """Let no agent call a tool any more. Raises NotFound."""
    form = call.body_as(ToolChangeForm)
    tool = await _stored(call).discard(call.identity.tenant, call.parameters["name"], by=call.by(form.by))
    return tool_view(tool)


async def rename_tool(call: ApiCall) -> ToolView:
    """Give a tool another name. Raises NotFound, NameTaken, UsageError."""
    form = call.body_as(ToolChangeForm)
    by = call.by(form.by)
    return tool_view(await _stored(call).rename(call.identity.tenant, call.parameters["name"], form.to, by=by))


def tool_view(tool: StoredTool) -> ToolView:
    """Return a tool as the API shows it."""
    spec = tool.spec()
    return ToolView(
        name=tool.name,
        status=tool.status,
        description=spec.description,
        schema=spec.schema,
        pipeline=list(tool.shape.steps),
        runs=list(tool.runs),
        made_at=views.api_time(tool.at),
    )


def _stored(call: ApiCall) -> StoredTools:
    return StoredTools(call.service.store.definitions, call.service.clock)
