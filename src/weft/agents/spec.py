"""Everything that decides what an agent does, as its runs record it: a run keeps the spec that it began with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from weft.agents.tools.spec import ToolSpec
from weft.core.unstorable import to_encodable
from weft.ports.models import ToolDefinition

FINAL_OUTPUT = "final_output"
"""The tool by which a model without schemas gives its answer."""
OnExhausted = Literal["fail", "ask", "answer"]


class RequestParts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all model calls of a run have in common. The step ``weft.model`` reads it from the spec."""

    tools: tuple[ToolDefinition, ...] = ()
    output_schema: dict[str, Any] | None = None
    options: dict[str, Any] = {}


class AgentRoute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The nodes of a graph that an agent may choose next, and where to go if it makes no valid choice."""

    of: tuple[str, ...]
    at_most: int
    otherwise: tuple[str, ...] = ()

    def is_valid(self, chosen: Any) -> bool:
        """Return whether this is a choice: 1 to ``at_most`` of the names, each once."""
        if not isinstance(chosen, list) or not 1 <= len(chosen) <= self.at_most:
            return False
        return all(name in self.of for name in chosen) and len(set(chosen)) == len(chosen)


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent as data. The step ``weft.model`` reads it from a blob, so that no turn repeats it."""

    agent: str
    models: tuple[str, ...]
    """The alias of the model, and those that are asked if it is not available, in order."""
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    """The only tools that may be called, with wildcards, also of those that are found and not listed. None for all."""
    output: dict[str, Any] | None = None
    """The JSON schema of the answer; None for text."""
    turns: int = 25
    approvers: tuple[str, ...] = ()
    approve: str = "irreversible"
    width: int = 8
    repairs: int = 2
    repeats: int = 5
    compact: float = 0.8
    result_bytes: int = 16_384
    stream: str = "agent"
    on_exhausted: OnExhausted = "fail"
    route: AgentRoute | None = None
    """Set for an agent that chooses the next nodes of a graph."""
    request: RequestParts = RequestParts()

    def tool(self, name: str) -> ToolSpec | None:
        """Return the tool with this name."""
        return next((tool for tool in self.tools if tool.name == name), None)


def request_parts(
    tools: Sequence[ToolSpec], output: dict[str, Any] | None, options: Mapping[str, Any], supports: Sequence[str]
) -> RequestParts:
    """Return what all calls of a model have in common. A model without schemas gets the tool ``final_output``."""
    offered = [tool.definition() for tool in sorted(tools, key=lambda tool: tool.name)]
    has_schema = "schema" in supports
    if output is not None and not has_schema:
        offered.append(_final_output(output))
    return RequestParts(tools=tuple(offered), output_schema=output if has_schema else None, options=dict(options))


def _final_output(output: dict[str, Any]) -> ToolDefinition:
    is_object = output.get("type") == "object"
    wrapped = {"type": "object", "properties": {"value": output}, "required": ["value"]}
    return ToolDefinition(
        name=FINAL_OUTPUT,
        description="Give the final answer. Call this once, when you are done.",
        parameters=output if is_object else wrapped,
    )


_encode = msgspec.json.Encoder(order="deterministic", enc_hook=to_encodable).encode
_decode = msgspec.json.Decoder(AgentSpec).decode


def encode_spec(spec: AgentSpec) -> bytes:
    """Return a spec as JSON. Equal specs have equal bytes, so that all runs of an agent share one blob."""
    return _encode(spec)


def decode_spec(raw: bytes) -> AgentSpec:
    """Read a spec that ``encode_spec`` wrote."""
    return _decode(raw)
