"""The results of tools of MCP servers as JSON. Files become blobs, which the run holds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)

from weft.agents.mcp.definitions import QUESTION, McpDefinition, misfit, schema_problem
from weft.agents.mcp.failures import ToolFailed

Keep = Callable[[bytes], Awaitable[str]]
"""Stores bytes and returns their digest."""


async def mcp_tool_result(server: str, tool: McpDefinition, found: CallToolResult, keep: Keep) -> Any:
    """Return the result of a tool. Raises ToolFailed if it is an error, or not what the tool promises."""
    parts = [await _part(one, keep) for one in found.content]
    if found.is_error:
        text = "\n".join(part for part in parts if isinstance(part, str)) or "it gave no reason"
        raise ToolFailed(f"{tool.name} of the MCP server {server} failed: {text[:2_000]}")
    if found.structured_content is not None:
        _check(server, tool, found.structured_content)
        if isinstance(found.structured_content, dict) and QUESTION in found.structured_content:
            raise ToolFailed(f"{tool.name} of the MCP server {server} gave a result with the key {QUESTION}.")
        files = [part for part in parts if isinstance(part, dict) and "blob" in part]
        return {"result": found.structured_content, "files": files} if files else found.structured_content
    if tool.output is not None:
        raise ToolFailed(f"{tool.name} of the MCP server {server} promises structured data and gave none.")
    return parts[0] if len(parts) == 1 else parts


def _check(server: str, tool: McpDefinition, value: Any) -> None:
    problem = misfit(tool.output, value) if tool.output is not None else ""
    if problem:
        raise ToolFailed(
            f"{tool.name} of the MCP server {server} gave a result that does not fit its schema: {problem}."
        )


async def _part(content: Any, keep: Keep) -> Any:
    match content:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=mime_type) | AudioContent(data=data, mime_type=mime_type):
            return await _file(content.type, data, mime_type, keep)
        case EmbeddedResource(resource=BlobResourceContents(blob=data, uri=uri, mime_type=mime_type)):
            return {**await _file("file", data, mime_type or "", keep), "uri": str(uri)}
        case EmbeddedResource(resource=resource):
            return {"type": "text", "uri": str(resource.uri), "text": getattr(resource, "text", "")}
        case ResourceLink(uri=uri, name=name, mime_type=mime_type):
            return {"type": "link", "uri": str(uri), "name": name, "mime_type": mime_type or ""}
        case _:
            return {"type": str(getattr(content, "type", "unknown"))}


async def _file(kind: str, data: str, mime_type: str, keep: Keep) -> dict[str, Any]:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ToolFailed("A file in the result of an MCP server is not base64.") from None
    digest = await keep(raw)
    blob = {"$weft": "blob", "at": f"cas://sha256:{digest}", "size": len(raw)}
    return {"type": kind, "mime_type": mime_type[:200], "blob": blob}


def question_of(server: str, tool: str, found: InputRequiredResult) -> dict[str, Any]:
    """Return what a server asks a person, with what it needs to go on. Raises ToolFailed if it asks for more."""
    forms: dict[str, Any] = {}
    for key, request in (found.input_requests or {}).items():
        if not isinstance(request, ElicitRequest) or not isinstance(request.params, ElicitRequestFormParams):
            raise ToolFailed(f"{tool} of the MCP server {server} asks for something that no person can answer here.")
        problem = schema_problem(request.params.requested_schema)
        if problem:
            raise ToolFailed(f"{tool} of the MCP server {server} asks with a form that cannot be shown: {problem}.")
        forms[key] = {"message": request.params.message[:4_000], "schema": request.params.requested_schema}
    return {QUESTION: forms, "state": found.request_state}
