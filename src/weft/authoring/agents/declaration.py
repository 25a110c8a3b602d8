"""What a program says about an agent, checked where it says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from weft.agents.budget import Budget, limits_of
from weft.agents.models.aliases import check_request_options
from weft.agents.spec import FINAL_OUTPUT, AgentSpec, OnExhausted, request_parts
from weft.agents.toolbox.definitions import READ
from weft.agents.tools.options import OfferedTool, check_approval
from weft.agents.tools.spec import TOOLS_MAX, ToolSpec, check_tool_names
from weft.core import values
from weft.core.budget_text import read_budget
from weft.core.budgets import BudgetLimits
from weft.core.code.locations import check_name
from weft.errors import BadValue, LimitExceeded, NameTaken
from weft.steps.codec import Codec

TURNS_MAX = 1_000
SYSTEM_BYTES_MAX = 64 * 1024
_KINDS: Mapping[str, tuple[tuple[type, ...], str, str]] = {
    "model": ((str,), "the name of a model", '"fast"'),
    "system": ((str,), "a text", '"You help customers of a shop."'),
    "prompt": ((str, type(None)), "a text", '"Rate ${company}."'),
    "approve": ((str,), "a text", '"always"'),
    "compact": ((int, float), "a number", "0.8"),
    "result_bytes": ((int,), "a whole number", "16_384"),
    "stream": ((str,), "the name of a stream", '"agent"'),
    "options": ((Mapping,), "a mapping", '{"temperature": 0}'),
}
"""What the options of an agent must be: type hints are not checked at run time."""


class AgentOptions(TypedDict, total=False):
    """The arguments of ``app.agent`` but its name, model and output."""

    system: str
    prompt: str | None
    tools: Sequence[Any]
    turns: int
    approvers: Sequence[str]
    approve: str
    budget: Budget | None
    gives: str | Sequence[str]
    width: int
    repairs: int
    repeats: int
    compact: float
    result_bytes: int
    stream: str
    options: Mapping[str, Any] | None
    on_exhausted: OnExhausted


class AgentDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``app.agent``."""

    name: str
    model: str
    output: Any = str
    system: str = ""
    prompt: str | None = None
    tools: Sequence[Any] = ()
    turns: int = 25
    approvers: Sequence[str] = ()
    approve: str = "irreversible"
    budget: Budget | Mapping[str, Any] | None = None
    """A program gives a Budget, a document a mapping."""
    gives: tuple[str, ...] = ()
    width: int = 8
    repairs: int = 2
    repeats: int = 5
    compact: float = 0.8
    result_bytes: int = 16_384
    stream: str = "agent"
    options: Mapping[str, Any] = {}
    on_exhausted: OnExhausted = "fail"

    def bound(self) -> list[Any]:
        """Return the arguments that tools are bound to, which may name parameters of the agent."""
        return [value for tool in self.tools if isinstance(tool, OfferedTool) for value in tool.bind.values()]

    def spec(
        self,
        models: Sequence[str],
        tools: Sequence[ToolSpec],
        supports: Sequence[str],
        allowed: Sequence[str] | None = None,
    ) -> AgentSpec:
        """Return what decides about a run that begins now. ``supports``: what the first model can do.

        ``allowed``: the only tools that the run may call, listed or not. None for all.

        Raises NameTaken, LimitExceeded.
        """
        check_tools(self.name, tools)
        output = output_schema(self.output)
        return AgentSpec(
            agent=self.name,
            models=tuple(models),
            system=self.system,
            tools=tuple(tools),
            allowed_tools=tuple(allowed) if allowed is not None else None,
            output=output,
            turns=self.turns,
            approvers=tuple(self.approvers),
            approve=self.approve,
            width=self.width,
            repairs=self.repairs,
            repeats=self.repeats,
            compact=self.compact,
            result_bytes=self.result_bytes,
            stream=self.stream,
            on_exhausted=self.on_exhausted,
            request=request_parts(tools, output, self.options, supports),
        )


def check_declaration(declared: AgentDeclaration) -> AgentDeclaration:
    """Return the options of an agent. Raises BadValue, LimitExceeded if they cannot be."""
    name = check_name(declared.name)
    for option, (kind, wanted, example) in _KINDS.items():
        given = getattr(declared, option)
        if not isinstance(given, kind) or isinstance(given, bool):
            raise _bad(name, f"{option}={given!r}", f"is not {wanted}", f"Write {option}={example}.")
    for option, most in (("turns", TURNS_MAX), ("width", 64), ("repairs", 100), ("repeats", 1_000)):
        _check_number(name, option, getattr(declared, option), most)
    if not 0 < declared.compact <= 1:
        raise _bad(name, f"compact={declared.compact!r}", "is not more than 0 and at most 1")
    if declared.result_bytes < 256:
        raise _bad(name, f"result_bytes={declared.result_bytes!r}", "is less than 256")
    if declared.on_exhausted not in ("fail", "ask", "answer"):
        raise _bad(name, f"on_exhausted={declared.on_exhausted!r}", "is not one of fail, ask, answer")
    if len(declared.system.encode()) > SYSTEM_BYTES_MAX:
        raise LimitExceeded(f"The system text of the agent {name} has more than {SYSTEM_BYTES_MAX:,} bytes.")
    for option in ("approvers", "tools"):
        given = getattr(declared, option)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise _bad(name, f"{option}={given!r}", "is not a list", f"Write {option}=[{_shown(given)}].")
    check_approval(declared.approve)
    check_name(declared.stream)
    values.encode(dict(declared.options), what=f"the options of {name} have")
    check_request_options(f"the agent {name}", declared.options)
    if not isinstance(declared.output, Mapping):
        Codec.of(declared.output)
    return declared


def check_tools(agent: str, tools: Sequence[ToolSpec]) -> None:
    """Raise NameTaken or LimitExceeded if an agent cannot offer these tools."""
    check_tool_names(tools, agent)
    if any(tool.name == FINAL_OUTPUT for tool in tools):
        raise NameTaken(f'A tool of the agent {agent} is called "{FINAL_OUTPUT}", which has a meaning of its own.')
    offered = sum(tool.name != READ for tool in tools)
    if offered > TOOLS_MAX:
        raise LimitExceeded(
            f"The agent {agent} offers {offered} tools; the limit is {TOOLS_MAX}.",
            hint="Offer fewer, or search_tools, which finds them.",
        )


def output_schema(output: Any) -> dict[str, Any] | None:
    """Return the JSON schema of an answer; None if it is text. A mapping is a schema itself."""
    if output is str:
        return None
    if isinstance(output, Mapping):
        return dict(output)
    return _without_top_reference(dict(Codec.of(output).schema()))


def _without_top_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Put the definition that a schema refers to at its top: providers want an object there."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    definition = schema.get("$defs", {}).get(name)
    return {**definition, "$defs": schema["$defs"]} if isinstance(definition, dict) else schema


def _check_number(agent: str, option: str, given: Any, most: int) -> None:
    least = 0 if option == "repairs" else 1
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise _bad(agent, f"{option}={given!r}", f"is not a whole number from {least} to {most:,}")


def _shown(given: Any) -> str:
    return repr(given) if isinstance(given, str) else "…"


def _bad(agent: str, what: str, why: str, hint: str = "") -> BadValue:
    return BadValue(f"The agent {agent}: {what} {why}.", hint=hint, code="value.bad_policy")


def declared_limits(declared: AgentDeclaration) -> BudgetLimits | None:
    """Return what a run of the agent may spend, if that is limited. Raises BadValue."""
    budget = declared.budget
    return read_budget(budget) if isinstance(budget, Mapping) else limits_of(budget)
