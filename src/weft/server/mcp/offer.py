"""Which workflows the MCP server offers, and their tools. Nothing is offered unless it is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.findings import did_you_mean
from weft.errors import NameTaken, UsageError
from weft.server.hosted_app import Hosted, HostedWorkflow
from weft.settings import project_names

RUN_ID = "run_id"
OWN_TOOLS = ("run_status", "run_result", "run_cancel", "run_send", "questions", "decide")
DESCRIPTION_CHARS_MAX = 1_024
NAME_CHARS_MAX = 64
HOW = (
    "Starts a durable run and waits up to 20 seconds for its result. "
    "If it takes longer, the answer has its run_id and status: call run_result with it."
)
_OTHER_CHARS = re.compile(r"[^A-Za-z0-9_-]")
_RUN_ID_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": 500,
    "description": "An id for the run. The same id and arguments are the same run, so a repeated call is safe.",
}
_STATE_SCHEMA: dict[str, Any] = {
    "run_id": {"type": "string"},
    "status": {"type": "string", "description": "completed, failed, cancelled, or how far the run is."},
    "error": {"type": "object", "description": "Why the run failed."},
    "summary": {"type": "string", "description": "What the run waits for."},
    "questions": {"type": "array", "items": {"type": "object"}, "description": "What the run asks people."},
}


class OfferedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that MCP clients may start. ``tool`` is its name there."""

    tool: str
    workflow: str
    description: str
    input: dict[str, Any]
    """The JSON Schema of the tool's arguments: the workflow's parameters, and ``run_id``."""
    output: dict[str, Any]
    """The JSON Schema of what a call returns."""


def offered_workflows(hosted: Hosted) -> dict[str, OfferedWorkflow]:
    """Return the offered workflows by the names of their tools. Raises UsageError, NameTaken."""
    newest = {one.name: one for one in hosted.workflows()}
    named = project_names("mcp")
    found: dict[str, OfferedWorkflow] = {}
    for one in newest.values():
        if not one.offered and one.name not in named:
            continue
        tool = workflow_tool_name(one.name)
        if tool in found or tool in OWN_TOOLS:
            other = f"the workflow {found[tool].workflow}" if tool in found else "a tool of Weft"
            raise NameTaken(
                f"The MCP tool of {one.name} would be called {tool}, as that of {other}.", hint="Rename it."
            )
        found[tool] = _offered(hosted, one, tool)
    return found


def workflow_tool_name(name: str) -> str:
    """Return the name of a tool for a workflow."""
    return _OTHER_CHARS.sub("_", name)[:NAME_CHARS_MAX]


def check_offer(hosted: Hosted) -> None:
    """Refuse a project that offers what does not exist or cannot be offered. Raises UsageError, NameTaken."""
    known = sorted({one.name for one in hosted.workflows()})
    for name in project_names("mcp"):
        if name not in known:
            hint = f"{did_you_mean(name, known)} There are: {', '.join(known) or 'none'}.".lstrip()
            raise UsageError(f"[tool.weft] mcp names {name!r}, which is no workflow of this app.", hint=hint)
    offered_workflows(hosted)


def _offered(hosted: Hosted, one: HostedWorkflow, tool: str) -> OfferedWorkflow:
    return OfferedWorkflow(
        tool=tool,
        workflow=one.name,
        description=_description(one),
        input=_input_schema(one),
        output=_output_schema(hosted.result_schema(one)),
    )


def _description(one: HostedWorkflow) -> str:
    own = one.description.strip().split("\n\n")[0].replace("\n", " ") or f"The workflow {one.name}."
    return f"{own[: DESCRIPTION_CHARS_MAX - len(HOW) - 2]}\n\n{HOW}"


def _input_schema(one: HostedWorkflow) -> dict[str, Any]:
    schema = dict(one.input or {"type": "object", "additionalProperties": True})
    properties = dict(schema.get("properties", {}))
    if RUN_ID in properties:
        raise UsageError(
            f"The workflow {one.name} has a parameter {RUN_ID}, which in MCP is the id of the run.",
            hint="Rename the parameter, or do not offer the workflow.",
        )
    schema["type"] = "object"
    schema["properties"] = {**properties, RUN_ID: _RUN_ID_SCHEMA}
    return schema


def _output_schema(result: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the schema of an answer: how the run stands, and its result if it has one."""
    own = dict(result or {})
    definitions = own.pop("$defs", None)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {**_STATE_SCHEMA, "result": own},
        "required": ["run_id", "status"],
    }
    return schema if definitions is None else {**schema, "$defs": definitions}
