"""Names and attributes of the spans of agents, by OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from weft.core import values
from weft.core.effects import PerformTask
from weft.ext.otel.wire import Attributes
from weft.runtime.held_models import MODEL_QUEUE
from weft.runtime.run.actor import Actor
from weft.settings import variable
from weft.steps.secrets import replace_secrets
from weft.steps.task import MODEL

CONTENT_CHARS_MAX = 64 * 1024
FIRST_ENTRIES = 20
"""Among how many of its first entries a run of an agent has recorded its spec."""
_UNNAMED = "weft.agent"
"""The workflow of agents that a document describes."""


def span_name(effect: PerformTask) -> str:
    """Return the name of an attempt: its step, or what a built-in step does and where."""
    tool = tool_of(effect)
    if tool:
        return f"execute_tool {tool}"
    if not effect.step.startswith("weft."):
        return effect.step
    if effect.step == MODEL:
        return f"chat {effect.policy.queue.removeprefix(MODEL_QUEUE)}"
    return f"{effect.step.removeprefix('weft.')} {effect.location.partition('/')[0]}"


def tool_of(effect: PerformTask) -> str:
    """Return the tool that an agent calls with this attempt; empty if it is no tool call."""
    return next(iter(effect.cover.amounts.per_tool), "") if effect.cover is not None else ""


def tool_attributes(effect: PerformTask) -> Attributes:
    """Return the attributes of a tool call; none if the attempt is no tool call."""
    tool = tool_of(effect)
    if not tool:
        return ()
    found: Attributes = (("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", tool))
    agent = effect.policy.agent
    return (*found, ("gen_ai.agent.name", agent)) if agent else found


class ToolContent:
    """What tools got and gave, for spans, if that is asked for."""

    def __init__(self) -> None:
        self.is_wanted = variable("WEFT_TRACE_CONTENT") == "1"

    def of_tool(self, effect: PerformTask, name: str, content: bytes) -> dict[str, str | int]:
        """Return the attribute for the ``arguments`` or the ``result`` of a tool call, without secrets."""
        if not tool_of(effect):
            return {}
        return {f"gen_ai.tool.call.{name}": replace_secrets(content.decode(errors="replace"))[:CONTENT_CHARS_MAX]}


class _GivenAgent(msgspec.Struct):
    agent: str = ""


def agent_of(actor: Actor) -> str:
    """Return the name of the agent whose run this is; empty if it is no run of an agent."""
    state: Any = actor.machine.state
    for entry in islice(getattr(state, "entries", {}).values(), FIRST_ENTRIES):
        if entry.kind == "spec":
            break
    else:
        return ""
    if state.workflow != _UNNAMED or values.is_ref(bytes(state.input)):
        return str(state.workflow)
    return msgspec.json.decode(state.input, type=_GivenAgent).agent or str(state.workflow)
