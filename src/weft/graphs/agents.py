"""Read agents in graph documents: ``agent: name``, or everything that an agent is, in our spelling or the older one."""

from __future__ import annotations

from typing import Any

from weft.core.graph.model import AgentChoice, AgentWork, Expr
from weft.documents.fields import Fields
from weft.documents.schema_words import object_schema
from weft.graphs.policies import fold_budget

AGENT = ("model", "system", "prompt", "tools", "output", "turns", "budget", "approve", "approvers", "options")
OLDER = ("temperature", "available_tools", "task")
CHOOSE = ("of", "at_most", "otherwise")
FIVE_TOOLS = ("execute_pipeline", "patch_workflow", "search_tools", "openapi_action", "delegate_to_agent")
"""The tools of an agent that the older spelling describes without naming any."""
CHOICES_MAX = 10
TURNS_MAX = 1_000


def read_agent(node: Fields, key: str, reference: str, *, older: bool) -> AgentWork:
    """Read the agent of a node. ``older``: the configuration of ``type: agent``."""
    raw = node.raw.get(key, {})
    choose = read_choice(node)
    if isinstance(raw, str) and raw and not older:
        return AgentWork(raw, choose=choose, config_ref=reference)
    known = (*AGENT, *OLDER) if older else AGENT
    if not isinstance(raw, dict):
        node.wrong(key, "the name of an agent, or a mapping with model")
        return AgentWork("")
    agent = Fields(raw, node.place(key) if key in node else node.at, node.problems, known)
    if "model" not in agent and not reference:
        agent.needed("model")
    prompt = agent.text(agent.spelling("prompt", "task"))
    return AgentWork(
        "", _agent_parts(agent, older=older), Expr(prompt) if prompt else None, choose=choose, config_ref=reference
    )


def _agent_parts(agent: Fields, *, older: bool) -> dict[str, Any]:
    """Return what describes an agent, in our spelling, without its prompt."""
    tools = agent.texts(agent.spelling("tools", "available_tools"))
    if older and not {"tools", "available_tools"} & set(agent.raw):
        tools = list(FIVE_TOOLS)
    output = None
    if "output" in agent and agent.raw["output"] != "string":
        output = object_schema(agent.raw["output"], agent.place("output"), agent.problems, required=True)
    turns = agent.integer("turns")
    if turns is not None and turns > TURNS_MAX:
        agent.wrong("turns", f"at most {TURNS_MAX:,}")
    found: dict[str, Any] = {
        "model": agent.text("model"),
        "system": agent.text("system"),
        "tools": tools,
        "output": output,
        "turns": turns,
        "approve": agent.text("approve"),
        "approvers": agent.texts("approvers"),
        "options": _read_options(agent),
        "budget": agent.raw["budget"] if fold_budget(agent) is not None else None,
    }
    return {name: part for name, part in found.items() if part}


def _read_options(agent: Fields) -> dict[str, Any]:
    options = _read_mapping(agent, "options")
    if "temperature" not in agent:
        return options
    given = agent.raw["temperature"]
    if not isinstance(given, int | float) or isinstance(given, bool):
        agent.wrong("temperature", "a number")
        return options
    return {**options, "temperature": given}


def _read_mapping(agent: Fields, key: str) -> dict[str, Any]:
    raw = agent.raw.get(key, {})
    if not isinstance(raw, dict):
        agent.wrong(key, "a mapping")
        return {}
    return raw


def read_choice(node: Fields) -> AgentChoice | None:
    """Read which nodes the agent of a node may choose next: ``choose``, or ``branch`` of the type ``agent_driven``."""
    if "choose" in node:
        choice = Fields(node.raw["choose"], node.place("choose"), node.problems, CHOOSE)
        of, otherwise, most = "of", "otherwise", choice.integer("at_most")
    else:
        branch = node.raw.get("branch")
        if not isinstance(branch, dict) or branch.get("type") != "agent_driven" or not branch.get("enabled", True):
            return None
        choice = Fields(branch, node.place("branch"), node.problems, branch)
        of, otherwise, most = "available_next_nodes", "default", None
    names = choice.texts(of)
    if of not in choice or not names:
        choice.problems.add("no_target", choice.at, f"{of} names no node that the agent may choose.")
        return None
    return AgentChoice(names, min(most or len(names), len(names), CHOICES_MAX), choice.texts(otherwise))
