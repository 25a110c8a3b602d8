"""Runs and workflows as resources. A caller sees the runs that it started, and the workflows that are offered."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from mcp_types import ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from weft.core.run.questions import STARTED_BY
from weft.errors import NotFound
from weft.observe.explain import explain
from weft.ports.run_query import RunQuery
from weft.server import views
from weft.server.endpoints.run_events import list_events
from weft.server.endpoints.streams import read_stream
from weft.server.event_views import EventsQuery
from weft.server.mcp.exchange import McpExchange
from weft.server.mcp.offer import offered_workflows

RUNS_LISTED_MAX = 50
EVENTS_MAX = 200
CHUNKS_MAX = 500
JSON = "application/json"
TEMPLATES = [
    ResourceTemplate(
        uri_template="weft://runs/{id}", name="run", description="How a run stands, and why.", mime_type=JSON
    ),
    ResourceTemplate(
        uri_template="weft://runs/{id}/events",
        name="events",
        description=f"The newest {EVENTS_MAX} events of a run.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template="weft://runs/{id}/streams/{name}",
        name="stream",
        description="The output that a run has written to a stream.",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template="weft://workflows/{name}",
        name="workflow",
        description="An offered workflow: its description and schemas.",
        mime_type=JSON,
    ),
]
_RUN = re.compile(r"weft://runs/([^/]{1,1500})(?:/(events)|/(streams)/([^/]{1,600}))?")
_WORKFLOW = re.compile(r"weft://workflows/([^/]{1,600})")


class ResourceAddress(NamedTuple):
    """What the address of a resource names."""

    kind: Literal["run", "events", "stream", "workflow"]
    id: str
    stream: str = ""


def parse_resource_uri(uri: str) -> ResourceAddress:
    """Parse the address of a resource. Raises NotFound."""
    if (found := _RUN.fullmatch(uri)) is not None:
        run, events, streams, stream = found.groups()
        if events:
            return ResourceAddress("events", unquote(run))
        return ResourceAddress("stream" if streams else "run", unquote(run), unquote(stream or ""))
    if (found := _WORKFLOW.fullmatch(uri)) is not None:
        return ResourceAddress("workflow", unquote(found.group(1)))
    raise NotFound(f"There is no resource {uri[:200]!r}.", hint="weft://runs/ID, weft://workflows/NAME")


def run_uri(run: str) -> str:
    """Return the address of a run."""
    return f"weft://runs/{quote(run, safe='')}"


async def listed(exchange: McpExchange) -> list[Resource]:
    """Return the offered workflows, and the newest runs that the caller started."""
    offered = offered_workflows(exchange.call.services.hosted)
    workflows = [
        Resource(uri=f"weft://workflows/{quote(one.workflow, safe='')}", name=one.workflow, mime_type=JSON)
        for one in offered.values()
    ]
    query = RunQuery(where={STARTED_BY: exchange.caller}, limit=RUNS_LISTED_MAX)
    page = await exchange.call.service.search(query)
    runs = [
        Resource(uri=run_uri(row.id), name=row.id, description=f"{row.workflow}, {row.status}", mime_type=JSON)
        for row in page.rows
    ]
    return workflows + runs


async def read(exchange: McpExchange, uri: str) -> ReadResourceResult:
    """Return a resource as JSON. Raises NotFound."""
    text = msgspec.json.encode(await _resource_value(exchange, parse_resource_uri(uri))).decode()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON, text=text)])


async def _resource_value(exchange: McpExchange, address: ResourceAddress) -> Any:
    if address.kind == "workflow":
        offered = offered_workflows(exchange.call.services.hosted)
        found = next((one for one in offered.values() if one.workflow == address.id), None)
        if found is None:
            raise NotFound(f"No workflow {address.id[:100]!r} is offered.")
        return found
    row = await exchange.own_run(address.id)
    match address.kind:
        case "events":
            query: Any = EventsQuery(order="last", limit=EVENTS_MAX)
            return await list_events(exchange.about(row.id, query=query))
        case "stream":
            call = exchange.about(row.id, query=views.ChunksQuery(limit=CHUNKS_MAX))
            call.parameters["stream"] = address.stream
            return await read_stream(call)
        case _:
            return {"run": views.run_view(row), "explanation": await explain(exchange.call.service, row)}
