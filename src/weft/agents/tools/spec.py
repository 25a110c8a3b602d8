"""A tool as an agent's runs know it: its definition, how it is performed, and the rules about its calls."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from weft.core import values
from weft.core.events import Effect
from weft.errors import NameTaken
from weft.ports.models import ToolDefinition
from weft.ports.store import Store

ToolKind = Literal["step", "workflow", "agent", "mcp", "builtin", "person", "pipeline"]
Touch = Literal["private", "untrusted", "outside"]

NAME_CHARS_MAX = 64
DESCRIPTION_CHARS_MAX = 1_024
TOOLS_MAX = 64
"""How many tools an agent may offer."""
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool. It is recorded with the run, so that a run keeps the tools that it began with."""

    name: str
    """As the model sees it: see ``model_tool_name``."""
    description: str = ""
    schema: dict[str, Any] = {}
    """The JSON schema of the arguments, without those that are bound."""
    effect: Effect = "irreversible"
    kind: ToolKind
    target: str = ""
    """The step, workflow, agent, built-in step, pipeline, or ``SERVER/TOOL`` that performs it."""
    given: dict[str, Any] = {}
    """What the body gets beside the model's arguments, for tools of the kinds ``mcp`` and ``builtin``."""
    bind: dict[str, Any] = {}
    """Values or templates over the agent's inputs. They replace whatever the model gives."""
    approve: str = ""
    """``irreversible``, ``always``, ``never`` or CEL over ``args``; empty: as the agent says."""
    editable: bool = False
    """Whether who approves a call may change its arguments."""
    touches: tuple[Touch, ...] = ()
    per_run: int | None = None
    """How often a run may call it."""
    on_error: Literal["tell", "fail"] = "tell"
    on_unknown: Literal["fail", "tell"] = "fail"
    of: tuple[str, ...] = ()
    """Who is asked, for the kind ``person``."""
    timeout_ms: int = 0
    """How long a question is open, for the kind ``person``."""
    digest: str = ""
    """The digest of what a model knows of the tool. ``make_tool`` sets it."""

    def definition(self) -> ToolDefinition:
        """Return the tool as a model sees it."""
        return ToolDefinition(name=self.name, description=self.description, parameters=self.schema)


class ToolSource(Protocol):
    """Something whose tools are known only where a run begins, such as an MCP server."""

    name: str

    async def offered_tools(self, store: Store, tenant: str) -> Sequence[ToolSpec]:
        """Return the tools that it offers now. Called once a run, in a step. Raises Refused, Unavailable."""
        ...


OfferTools = Callable[[Store, str], Awaitable[Sequence[ToolSpec]]]


def make_tool(spec: ToolSpec) -> ToolSpec:
    """Return a tool with a name that models accept, a description of bounded length, and its digest."""
    named = msgspec.structs.replace(
        spec, name=model_tool_name(spec.name), description=spec.description[:DESCRIPTION_CHARS_MAX]
    )
    return msgspec.structs.replace(named, digest=tool_digest(named))


def model_tool_name(name: str) -> str:
    """Return a name that models accept: 1 to 64 letters, digits, ``_`` and ``-``. Other characters become ``_``."""
    return _OTHER_CHARACTERS.sub("_", name)[:NAME_CHARS_MAX] or "_"


def tool_digest(spec: ToolSpec) -> str:
    """Return the digest of what a model knows of a tool: name, description, schema and effect."""
    known = [spec.name, spec.description, spec.schema, spec.effect]
    return values.digest(msgspec.json.encode(known, order="deterministic"))


def first_paragraph(text: str | None) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def without_parameters(schema: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the schema of an object without some of its properties."""
    properties = {name: part for name, part in schema.get("properties", {}).items() if name not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    return {**schema, "properties": properties, "required": required}


def check_tool_names(tools: Sequence[ToolSpec], agent: str) -> None:
    """Raise NameTaken if two tools of an agent have the same name."""
    seen: dict[str, ToolSpec] = {}
    for tool in tools:
        other = seen.setdefault(tool.name, tool)
        if other is not tool:
            raise NameTaken(
                f'Two tools of the agent {agent} are called "{tool.name}" '
                f"({other.kind} {other.target or other.name}, {tool.kind} {tool.target or tool.name}).",
                hint="Rename one: weft.tool(step, name=...).",
            )
