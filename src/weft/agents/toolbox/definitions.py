"""The tools that Weft has itself, as models see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.agents.tools.spec import ToolSpec, Touch
from weft.pipelines.limits import STEPS_MAX
from weft.pipelines.steps import STEPS
from weft.steps.task import TOOL

EXECUTE: Final = "execute_pipeline"
READ: Final = "read_result"
SEARCH: Final = "search_tools"
CALL: Final = "call_tool"
DELEGATE: Final = "delegate_to_agent"
PATCH: Final = "patch_workflow"
OPENAPI: Final = "openapi_action"
OPERATION: Final = f"{TOOL}openapi_operation"
"""The step that finds the operation of an ``openapi_action``, before anybody is asked about it."""
INTERPRETER: Final = "code_interpreter"
"""The agent that is no agent: it runs Python in a sandbox."""

STORED: Final = f"{TOOL}stored"
"""The step that performs a tool that was made of pipelines."""

LIMIT_MAX: Final = 50
READ_BYTES: Final = 8_192
READ_BYTES_MAX: Final = 65_536

_STEPS_TEXT: Final = """A list of 1 to 20 steps; data flows from each to the next. Rows are an array of objects; a field is a key or a dotted path.
{step: "http_request", url, method: GET or POST, params, headers, auth_profile}: fetch JSON or text; it replaces the data
{step: "table_sort", field, order: asc or desc}
{step: "table_filter", condition: {field, op, value} or a list of them}: op is < > <= >= == !=
{step: "table_select", fields: [...]}
{step: "top_k", k}
{step: "groupby", by, agg: count, sum, avg, min or max, field, as}
{step: "join", right: rows or a result_ref, on, how: inner or left}
{step: "jq_transform", query}
{step: "regex_extract", field, pattern, group, into, all}
{step: "parse_date", field, format, timezone, into, on_error: fail or null}"""  # noqa: E501 - one line per step


def pipeline_tools() -> Sequence[ToolSpec]:
    """Return the tool ``execute_pipeline``."""
    step = {"type": "object", "properties": {"step": {"enum": list(STEPS)}}, "required": ["step"]}
    return [
        _tool(
            EXECUTE,
            "Run a pipeline of data steps: fetch, sort, filter, select, group, join, transform. The result is kept; "
            "you get its reference (result_ref) and a preview. Give input_ref to begin with an earlier result.",
            {
                "pipeline": {
                    "type": "array",
                    "items": step,
                    "minItems": 1,
                    "maxItems": STEPS_MAX,
                    "description": _STEPS_TEXT,
                },
                "input_ref": {"type": "string", "description": 'A result_ref, or "last" for the newest result.'},
                "session_id": {"type": "string"},
            },
            ["pipeline"],
        )
    ]


def read_tools() -> Sequence[ToolSpec]:
    """Return the tool ``read_result``, which stands beside all others."""
    return [
        _tool(
            READ,
            "Read a part of a result that is shown by reference only: rows of an array, or characters of the rest.",
            {
                "ref": {"type": "string", "description": "A result_ref."},
                "offset": {"type": "integer", "minimum": 0, "default": 0},
                "limit": {"type": "integer", "minimum": 1, "maximum": READ_BYTES_MAX},
            },
            ["ref"],
        )
    ]


def search_tools() -> Sequence[ToolSpec]:
    """Return the tools ``search_tools`` and ``call_tool``."""
    found = _tool(
        SEARCH,
        "Search the tools that you may call, also those that are not listed. Call what you find with call_tool.",
        {
            "query": {"type": "string", "description": "Words for what the tool does."},
            "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": 10},
        },
        ["query"],
    )
    called = _tool(
        CALL,
        "Call a tool that search_tools found.",
        {"name": {"type": "string"}, "arguments": {"type": "object"}},
        ["name"],
    )
    return [found, called]


def delegate_tools() -> Sequence[ToolSpec]:
    """Return the tool ``delegate_to_agent``."""
    return [
        _tool(
            DELEGATE,
            "Delegate work to an agent or workflow that you may call, by its name. code_interpreter runs Python in a "
            "sandbox: inputs are {code, data?}; the value of the last expression and what it prints come back.",
            {
                "agent_type": {"type": "string"},
                "inputs": {"type": "object"},
                "config": {"type": "object", "maxProperties": 0, "description": "Not used: leave it empty."},
            },
            ["agent_type"],
        )
    ]


def patch_tools() -> Sequence[ToolSpec]:
    """Return the tool ``patch_workflow``."""
    operation = {
        "type": "object",
        "properties": {
            "op": {"enum": ["add", "replace", "remove", "test"]},
            "path": {"type": "string", "description": "/nodes/- and /edges/- add; /nodes/NAME/FIELD changes."},
            "value": {},
        },
        "required": ["op", "path"],
        "additionalProperties": False,
    }
    specification = {
        "type": "object",
        "properties": {
            "operations": {"type": "array", "items": operation, "minItems": 1, "maxItems": 20},
            "description": {"type": "string", "description": "Why; people read it before they agree."},
        },
        "required": ["operations"],
        "additionalProperties": False,
    }
    return [
        _tool(
            PATCH,
            "Change the workflow that you are a node of, while it runs: add nodes and edges, and change those that you "
            "added. With the workflow_tag of another one, make a new version of that. People may have to agree.",
            {"patch_spec": specification, "workflow_tag": {"type": "string", "description": "TAG or WORKFLOW:TAG"}},
            ["patch_spec"],
        )
    ]


def openapi_tools() -> Sequence[ToolSpec]:
    """Return the tool ``openapi_action``."""
    return [
        _tool(
            OPENAPI,
            "Call an operation of an HTTP API that has an OpenAPI document. You get the status, headers and body.",
            {
                "openapi_url": {"type": "string", "description": "Where the OpenAPI document is, in JSON."},
                "operation_id": {"type": "string"},
                "params": {"type": "object", "description": "Parameters by name; what is no parameter is the body."},
                "auth_profile": {"type": "string", "description": "The name of the credentials to use."},
            },
            ["openapi_url", "operation_id"],
            touches=("untrusted",),
        )
    ]


def _tool(
    name: str, description: str, properties: dict[str, Any], required: list[str], *, touches: tuple[Touch, ...] = ()
) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolSpec(
        name=name,
        description=description,
        schema=schema,
        effect="pure",
        kind="builtin",
        target=f"{TOOL}{name}",
        touches=touches,
    )
