"""Findings about agents that a program declares, for ``weft check``."""

from __future__ import annotations

from typing import Any

from weft.agents.models.aliases import ModelAliases
from weft.agents.tools.spec import Touch
from weft.authoring.agents.agent import Agent
from weft.authoring.agents.offered import known_tools
from weft.authoring.registrations import Registrations
from weft.core.findings import Finding
from weft.errors import WeftError

ALL: tuple[Touch, ...] = ("private", "untrusted", "outside")


def registered_agents(registered: Registrations) -> list[Agent[Any]]:
    """Return the agents that are registered."""
    found = (registered.newest(name) for name in registered.runnable_names())
    return [one for one in found if isinstance(one, Agent)]


def agent_findings(agent: Agent[Any], registered: Registrations) -> list[Finding]:
    """Return what is wrong with an agent, or risky: unknown models, and words of strangers near private data."""
    found = _unknown_models(agent, registered.models.aliases)
    touched = {touch: tool.name for tool in known_tools(agent.declaration.tools, registered) for touch in tool.touches}
    if set(ALL) <= set(touched):
        named = ", ".join(f"{touch}: {touched[touch]}" for touch in ALL)
        message = f"The agent {agent.name} reads private data and words of strangers, and sends outside ({named})."
        advice = "Words of strangers can make it send private data. Take one of the three away, or use two agents."
        found.append(
            Finding(code="agent.trifecta", message=message, path="tools", suggestion=advice, severity="warning")
        )
    return found


def _unknown_models(agent: Agent[Any], aliases: ModelAliases) -> list[Finding]:
    try:
        aliases.chain(agent.declaration.model)
    except WeftError as error:
        return [Finding(code=error.code, message=error.message, path="model", suggestion=error.hint)]
    return []
