"""Agents in documents: turn an agent node into the child run of an agent, and find what it names that is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.agents.policy.defaults import default_for
from weft.agents.spec import AgentRoute, AgentSpec, request_parts
from weft.authoring.agents.agent import VERSION, WORKFLOW, Agent, encode_input, with_allowed_tools
from weft.authoring.agents.declaration import AgentDeclaration, check_declaration, declared_limits
from weft.authoring.agents.offered import known_tools, only_allowed, sources_in, with_reading
from weft.authoring.agents.workflow import AgentGroup
from weft.core import values
from weft.core.findings import Finding, Problems, did_you_mean
from weft.core.graph.hosted import AgentCall, AgentOrder
from weft.core.graph.model import AgentChoice, AgentWork, GraphModel, Node
from weft.documents.fields import Fields
from weft.errors import NotAllowed, UsageError, WeftError
from weft.graphs.agents import read_agent
from weft.runtime.policy import DENIED, asked_for, denied_error

_PROMPT = "prompt"


def agent_call(group: AgentGroup, graph: GraphModel, order: AgentOrder) -> AgentCall:
    """Return the child run of an agent node. Raises UsageError, BadValue, NotAllowed."""
    node = graph.nodes[order.node]
    work = node.work
    assert isinstance(work, AgentWork), "the node runs an agent"
    if work.agent and work.choose is None:
        agent = _agent_named(group, work.agent)
        given = with_allowed_tools(agent.given(_arguments(agent, order.prompt)), work.allowed_tools)
        return AgentCall(agent.name, agent.version, given, declared_limits(agent.declaration))
    declared = _agent_named(group, work.agent).declaration if work.agent else declaration_of(graph, node, order.config)
    spec = _spec(group, declared, sources=bool(work.agent), allowed=work.allowed_tools)
    if work.choose is not None:
        spec = _with_choice(group, spec, _narrow_to_policy(group, graph, order, _narrow_to_rules(work.choose, order)))
    prompt, inputs = order.prompt, {}
    if work.agent:
        agent = _agent_named(group, work.agent)
        given = msgspec.json.decode(agent.given(_arguments(agent, order.prompt)))
        prompt, inputs = given["prompt"], given.get("inputs", {})
    raw = encode_input(spec.agent, _prompt_text(prompt), None, inputs, spec)
    return AgentCall(WORKFLOW, VERSION, raw, declared_limits(declared))


def unknown_parts(graph: GraphModel, group: AgentGroup) -> list[Finding]:
    """Return a finding for every agent, model and tool in the agent nodes of a graph that is not registered."""
    found: list[Finding] = []
    for node in graph.nodes.values():
        if isinstance(node.work, AgentWork):
            found += _unknown_parts_of_node(graph, node, node.work, group)
    return found


def _unknown_parts_of_node(graph: GraphModel, node: Node, work: AgentWork, group: AgentGroup) -> list[Finding]:
    at = f"nodes.{node.id}.agent"
    try:
        if work.agent:
            _agent_named(group, work.agent)
        elif not work.config_ref:
            _spec(group, declaration_of(graph, node, None), sources=False)
    except WeftError as error:
        return [Finding(error.code, error.message, at, suggestion=error.hint)]
    return []


def declaration_of(graph: GraphModel, node: Node, config: Any) -> AgentDeclaration:
    """Return what a document says about an agent, as if a program had declared it. Raises BadValue."""
    work = node.work
    assert isinstance(work, AgentWork), "the node runs an agent"
    parts = {**_parts_in(config, node), **(work.parts or {})}
    named = {name: parts[name] for name in ("model", "system", "turns", "approve") if name in parts}
    return check_declaration(
        AgentDeclaration(
            name=f"{graph.name}.{node.id}",
            output=parts.get("output") or str,
            tools=tuple(parts.get("tools", ())),
            approvers=tuple(parts.get("approvers", ())),
            options=parts.get("options", {}),
            budget=parts.get("budget"),
            **{"model": "", **named},
        )
    )


def _parts_in(config: Any, node: Node) -> dict[str, Any]:
    """Return what the configuration in a blob says about an agent. Raises BadValue."""
    if config is None:
        return {}
    problems = Problems()
    raw = {"agent": config}
    read = read_agent(Fields(raw, (), problems, raw), "agent", "", older=True)
    if problems.has_errors:
        first = problems.entries[0]
        raise UsageError(f"The configuration of {node.id} is not valid: {first.message}", code="graph.bad_config")
    return read.parts or {}


def _agent_named(group: AgentGroup, name: str) -> Agent[Any]:
    found = group.newest(name)
    if isinstance(found, Agent):
        return found
    agents = [one for one in group.runnable_names() if isinstance(group.newest(one), Agent)]
    raise UsageError(
        f'There is no agent "{name}".',
        hint=did_you_mean(name, agents) or "Declare it with app.agent, and import the file that does.",
        code="graph.unknown_agent",
    )


def _arguments(agent: Agent[Any], prompt: Any) -> Mapping[str, Any]:
    """Return the arguments of a registered agent: its parameters from what arrived, or what arrived as its prompt."""
    if agent.parameters:
        known = prompt if isinstance(prompt, dict) else {}
        return {name: value for name, value in known.items() if name in agent.parameters}
    if isinstance(prompt, dict) and list(prompt) == [_PROMPT]:
        prompt = prompt[_PROMPT]
    return {_PROMPT: _prompt_text(prompt)}


def _prompt_text(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else values.encode_trusted(prompt).decode()


def _spec(
    group: AgentGroup, declared: AgentDeclaration, *, sources: bool, allowed: Sequence[str] | None = None
) -> AgentSpec:
    """Return what decides about a run that begins now. Raises UsageError (``model.unknown``, ``tool.unknown``)."""
    aliases = group.models.aliases
    if sources and sources_in(declared.tools):
        raise UsageError(
            f"The agent {declared.name} cannot choose the next node, because it has tools of MCP servers.",
            hint="Let another agent choose.",
        )
    model = aliases.get(declared.model)
    tools = with_reading(only_allowed(known_tools(declared.tools, group), allowed))
    return declared.spec(aliases.chain(declared.model), tools, model.supports, allowed)


def _narrow_to_rules(choose: AgentChoice, order: AgentOrder) -> AgentChoice:
    """Return the choice without the nodes that the rules of the run do not allow. Raises NotAllowed if none is left."""
    if order.transitions is None:
        return choose
    left = _choice_among(choose, order.transitions)
    if not left.of:
        raise NotAllowed(
            f"{order.node} may choose no node: the run_policies of the run allow none of {', '.join(choose.of)}.",
            code=DENIED,
        )
    return left


def _narrow_to_policy(group: AgentGroup, graph: GraphModel, order: AgentOrder, choose: AgentChoice) -> AgentChoice:
    """Return the choice without the nodes that the policy denies. Raises NotAllowed if none is left."""
    policy = group.service.policy
    if policy.rules is None or not policy.rules.governs("route"):
        return choose
    agent = f"{graph.name}.{order.node}"
    left: list[str] = []
    for name in dict.fromkeys((*choose.of, *choose.otherwise)):
        asked = asked_for(order.run_id, graph.name, order.attributes, action="route", name=name)
        asked = msgspec.structs.replace(asked, agent=agent, node=order.node)
        verdict = policy.verdict(asked, default_for("route", agent=agent))
        if verdict.permission == "allow":
            left.append(name)
        elif name == choose.of[-1] and not left:
            raise denied_error(asked, verdict)
    return _choice_among(choose, left)


def _choice_among(choose: AgentChoice, names: Sequence[str]) -> AgentChoice:
    """Return a choice among these nodes only."""
    of = [name for name in choose.of if name in names]
    otherwise = [name for name in choose.otherwise if name in names]
    return msgspec.structs.replace(choose, of=of, at_most=min(choose.at_most, len(of)), otherwise=otherwise)


def _with_choice(group: AgentGroup, spec: AgentSpec, choose: AgentChoice) -> AgentSpec:
    """Return a spec whose output also says which nodes come next, and why."""
    base = spec.output or {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    names = {
        "type": "array",
        "items": {"type": "string", "enum": choose.of},
        "minItems": 1,
        "maxItems": choose.at_most,
        "uniqueItems": True,
        "description": "What comes next.",
    }
    reasoning = {"type": "string", "description": "Why."}
    schema = {
        **base,
        "properties": {**base.get("properties", {}), "next_nodes": names, "reasoning": reasoning},
        "required": [*base.get("required", ()), "next_nodes", "reasoning"],
    }
    supports = group.models.aliases.get(spec.models[0]).supports
    return msgspec.structs.replace(
        spec,
        output=schema,
        route=AgentRoute(of=tuple(choose.of), at_most=choose.at_most, otherwise=tuple(choose.otherwise)),
        request=request_parts(spec.tools, schema, spec.request.options, supports),
    )
