"""Definitions of tools as MCP servers give them: limits, canonical JSON, and comparison with what was accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from weft.agents.mcp.failures import ToolFailed
from weft.core.ids import Millis
from weft.errors import LimitExceeded
from weft.ports.tool_pins import ToolPin, ToolPins

TOOLS_OF_SERVER_MAX = 64
"""How many tools of one server a program may name."""
LISTED_MAX = 1_000
"""How many tools a server may list."""
DEFINITION_BYTES_MAX = 64 * 1024
DEPTH_MAX = 32
QUESTION = "weft.question"
"""The first key of a result that is a question to a person. No tool may give it."""
_canonical = msgspec.json.Encoder(order="deterministic").encode


class McpDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it. ``text`` is all of that as canonical JSON, which is what is pinned."""

    name: str
    description: str
    input: dict[str, Any]
    output: dict[str, Any] | None
    text: str
    problem: str = ""
    """Why the tool cannot be used; empty if it can."""


def read_definition(given: Mapping[str, Any]) -> McpDefinition:
    """Read a definition as it came over the wire. One that cannot be used says why."""
    fields = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    known = {field: given[field] for field in fields if given.get(field) is not None}
    text = _canonical(known).decode()
    schemas = [known.get("inputSchema"), known.get("outputSchema")]
    problem = ""
    if len(text) > DEFINITION_BYTES_MAX:
        problem = f"its definition has more than {DEFINITION_BYTES_MAX:,} bytes"
    elif not isinstance(schemas[0], dict) or schemas[0].get("type", "object") != "object":
        problem = "its arguments are not an object"
    else:
        problem = next((why for schema in schemas if schema is not None and (why := schema_problem(schema))), "")
    return McpDefinition(
        name=str(known.get("name", ""))[:200],
        description=str(known.get("description") or known.get("title") or ""),
        input=schemas[0] if isinstance(schemas[0], dict) else {},
        output=schemas[1] if isinstance(schemas[1], dict) else None,
        text=text,
        problem=problem,
    )


def schema_problem(schema: Any) -> str:
    """Return why values cannot be checked with a schema; empty if they can."""
    import jsonschema_rs  # noqa: PLC0415 - heavy, and only programs with MCP servers need it

    if _depth(schema) > DEPTH_MAX:
        return "its schema is nested too deeply"
    try:
        jsonschema_rs.validator_for(schema, retriever=_refuse_reference, pattern_options=jsonschema_rs.RegexOptions())
    except (ValueError, jsonschema_rs.ValidationError) as error:
        return f"its schema is not valid: {str(error).splitlines()[0][:200]}"
    return ""


def misfit(schema: dict[str, Any], value: Any) -> str:
    """Return what is wrong with a value by its schema; empty if it fits. Patterns take linear time."""
    import jsonschema_rs  # noqa: PLC0415 - see above

    validator = jsonschema_rs.validator_for(
        schema, retriever=_refuse_reference, pattern_options=jsonschema_rs.RegexOptions()
    )
    for error in validator.iter_errors(value):
        path = ".".join(str(part) for part in error.instance_path)
        return f"{path}: {error.message}"[:500] if path else str(error.message)[:500]
    return ""


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri[:200]}")


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level and deepest <= DEPTH_MAX:
        deepest += 1
        level = [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(part, dict | list)
        ]
    return deepest


def named_tools(listed: Sequence[McpDefinition], globs: Sequence[str] | None) -> list[McpDefinition]:
    """Return the tools that a program names, or all of them."""
    return [one for one in listed if globs is None or any(fnmatchcase(one.name, glob) for glob in globs)]


def check_listed(server: str, listed: Sequence[McpDefinition]) -> None:
    """Refuse a list with too many tools, or with two of the same name. Raises LimitExceeded, ToolFailed."""
    if len(listed) > LISTED_MAX:
        raise LimitExceeded(f"The MCP server {server} lists more than {LISTED_MAX:,} tools.")
    names = [one.name for one in listed]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ToolFailed(f"The MCP server {server} lists two tools with the name {twice!r}.")


def check_named(server: str, named: Sequence[McpDefinition]) -> None:
    """Refuse too many tools for an agent. Raises LimitExceeded."""
    if len(named) > TOOLS_OF_SERVER_MAX:
        raise LimitExceeded(
            f"The MCP server {server} offers {len(named)} tools; the limit is {TOOLS_OF_SERVER_MAX}.",
            hint='Name those that you need: weft.mcp(..., tools=["search_*"]).',
        )


async def accepted_names(pins: ToolPins, server: str, listed: Sequence[McpDefinition], now: int) -> set[str]:
    """Return the names of the tools that are as they were accepted, and note the others.

    At first sight of a server, all its tools are accepted.
    """
    known = {pin.tool: pin for pin in await pins.list(server)}
    if not known and listed:
        first = [ToolPin(server=server, tool=one.name, accepted=one.text, at=Millis(now)) for one in listed]
        if await pins.begin(first):
            return {one.name for one in listed}
        known = {pin.tool: pin for pin in await pins.list(server)}
    for one in listed:
        pin = known.get(one.name)
        seen = "" if pin is not None and pin.accepted == one.text else one.text
        if pin is None or pin.seen != seen:
            await pins.note(ToolPin(server=server, tool=one.name, seen=seen, at=Millis(now)))
    return {one.name for one in listed if one.name in known and known[one.name].accepted == one.text}
