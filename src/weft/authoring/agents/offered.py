"""Turn what a program offers to an agent into tools: steps, workflows, agents, names, people and MCP servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.agents.policy.globs import is_match
from weft.agents.toolbox.definitions import EXECUTE, OPENAPI, READ, SEARCH, read_tools
from weft.agents.tools.built_in import BUILT_IN, built_in_tools, unknown_tool
from weft.agents.tools.options import OfferedTool, PersonTool
from weft.agents.tools.spec import ToolSource, ToolSpec, first_paragraph, make_tool, without_parameters
from weft.authoring.agents.agent import Agent
from weft.authoring.runnable import Runnable
from weft.authoring.steps import Step
from weft.authoring.workflows import Workflow
from weft.core.secrets import KEY
from weft.errors import UsageError

_ANY_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


class OfferingGroup(Protocol):
    """What is registered beside an agent."""

    def find_step(self, name: str) -> Step[Any, Any] | None: ...

    def newest(self, name: str) -> Runnable[Any] | None: ...

    def step_names(self) -> list[str]: ...

    def runnable_names(self) -> list[str]: ...


def known_tools(tools: Sequence[Any], group: OfferingGroup) -> list[ToolSpec]:
    """Return the tools that are known before a run begins. Raises UsageError (``tool.unknown``), BadValue."""
    return [spec for offered in tools if source_of(offered) is None for spec in _specs_of(offered, group)]


def with_reading(tools: list[ToolSpec]) -> list[ToolSpec]:
    """Return tools with ``read_result`` beside them, which reads results that are only shown by reference."""
    if not tools or any(tool.name == READ for tool in tools):
        return tools
    return [*tools, *(make_tool(spec) for spec in read_tools())]


def only_allowed(tools: list[ToolSpec], allowed: Sequence[str] | None) -> list[ToolSpec]:
    """Return the tools whose names are allowed, by names with wildcards. None allows all."""
    if allowed is None:
        return tools
    return [tool for tool in tools if any(is_match(pattern, tool.name) for pattern in allowed)]


def sources_in(tools: Sequence[Any]) -> list[tuple[ToolSource, OfferedTool | None]]:
    """Return the sources whose tools are known only where a run begins, with the rules about their calls."""
    found = ((source_of(offered), offered) for offered in tools)
    return [
        (source, offered if isinstance(offered, OfferedTool) else None)
        for source, offered in found
        if source is not None
    ]


def source_of(offered: Any) -> ToolSource | None:
    """Return the source of tools that this is, or that has these rules; None if it is something else."""
    of = offered.of if isinstance(offered, OfferedTool) else offered
    return of if hasattr(of, "offered_tools") else None


def with_rules(spec: ToolSpec, rules: OfferedTool | None) -> ToolSpec:
    """Return a tool with the rules that the program has for it. Bound parameters leave its schema."""
    if rules is None:
        return make_tool(spec)
    changed = msgspec.structs.replace(
        spec, **rules.rules(), schema=without_parameters(spec.schema, list(rules.bind)) if rules.bind else spec.schema
    )
    changed = msgspec.structs.replace(changed, touches=tuple(dict.fromkeys((*spec.touches, *rules.touches))))
    return make_tool(changed)


def _specs_of(offered: Any, group: OfferingGroup) -> list[ToolSpec]:
    if isinstance(offered, PersonTool):
        return [offered.spec()]
    rules = offered if isinstance(offered, OfferedTool) else None
    of = rules.of if rules is not None else offered
    if isinstance(of, str):
        of = group.find_step(of) or group.newest(of) or of
    if isinstance(of, str):
        if of not in BUILT_IN:
            raise unknown_tool(of, [*group.step_names(), *group.runnable_names(), *BUILT_IN])
        return [with_rules(spec, rules) for spec in built_in_tools(of)]
    spec = _of_registered(of)
    if isinstance(of, Agent) and _reads_strangers(of, group, set()):
        spec = msgspec.structs.replace(spec, touches=("untrusted",))
    if rules is not None:
        _check_bound(of.signature.schema() if isinstance(of, Step | Workflow) else spec.schema, spec.name, rules)
    return [with_rules(spec, rules)]


def _reads_strangers(agent: Agent[Any], group: OfferingGroup, seen: set[str]) -> bool:
    """Return whether an agent, or one that it may call, may take in words of strangers. Then its answer has them too.

    ``seen``: the agents that were looked at, because names may lead back to one.
    """
    seen.add(agent.name)
    for offered in agent.declaration.tools:
        if isinstance(offered, OfferedTool) and "untrusted" in offered.touches:
            return True
        of = offered.of if isinstance(offered, OfferedTool) else offered
        if isinstance(of, str):
            of = group.find_step(of) or group.newest(of) or of
        if isinstance(of, str) and of in (EXECUTE, OPENAPI, SEARCH):
            return True
        if isinstance(of, Agent) and of.name not in seen and _reads_strangers(of, group, seen):
            return True
    return False


def _of_registered(of: Any) -> ToolSpec:
    if isinstance(of, Step):
        return ToolSpec(
            name=of.name,
            description=first_paragraph(of.__doc__),
            schema=_without_secrets(of.signature.schema()),
            effect=of.policy.effect,
            kind="step",
            target=of.body.name,
        )
    if isinstance(of, Agent):
        return ToolSpec(name=of.name, description=of.description, schema=of.tool_schema(), kind="agent", target=of.name)
    if isinstance(of, Workflow):
        schema = _without_secrets(of.signature.schema())
        description = first_paragraph(of.__doc__)
        return ToolSpec(name=of.name, description=description, schema=schema, kind="workflow", target=of.name)
    if isinstance(of, Runnable):
        loaded = getattr(of, "loaded", None)  # only graphs have a document
        schema = dict(loaded.graph.input or _ANY_OBJECT) if loaded is not None else _ANY_OBJECT
        return ToolSpec(name=of.name, schema=schema, kind="workflow", target=of.name)
    raise UsageError(
        f"{of!r} cannot be a tool.",
        hint="Offer a step, a workflow, an agent, an MCP server, weft.person(), or the name of a tool.",
        code="tool.unknown",
    )


def schema_now(of: Any, bound: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema that a model would see of a step or workflow as it is registered now."""
    return without_parameters(_of_registered(of).schema, bound)


def _without_secrets(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the parameters that are secrets: no model sees or gives them."""
    defs = schema.get("$defs", {})
    secret = [name for name, part in schema.get("properties", {}).items() if _is_secret(part, defs)]
    return without_parameters(schema, secret) if secret else schema


def _is_secret(part: Any, defs: dict[str, Any]) -> bool:
    if isinstance(part, dict):
        target = defs.get(str(part.get("$ref", "")).rpartition("/")[2])
        if target is not None and _is_secret(target, {}):
            return True
        options = [*part.get("anyOf", ()), *part.get("oneOf", ())]
        return KEY in part.get("properties", {}) or any(_is_secret(option, defs) for option in options)
    return False


def _check_bound(schema: Mapping[str, Any], tool: str, rules: OfferedTool) -> None:
    """Raise UsageError if a rule binds a parameter that a tool does not have. ``schema`` has its secrets, too."""
    unknown = [name for name in rules.bind if name not in schema.get("properties", {})]
    takes_more = schema.get("additionalProperties") is not False
    if unknown and not takes_more:
        takes = ", ".join(schema.get("properties", {})) or "nothing"
        raise UsageError(f"{tool} has no parameter {unknown[0]} to bind.", hint=f"It takes {takes}.")
