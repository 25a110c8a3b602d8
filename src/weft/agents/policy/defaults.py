"""The permissions where the policy has no rule. Pure."""

from __future__ import annotations

from weft.agents.policy.verdicts import Action, Permission

FOR_AGENTS: dict[Action, Permission] = {
    "tool": "allow",  # those that the agent lists
    "model": "allow",  # its model and fallbacks
    "host": "deny",
    "secret": "deny",  # except what the author bound
    "step": "allow",  # they are reached through tools
    "workflow": "allow",
    "route": "allow",  # those that its node lists
    "patch": "ask",
}
FOR_CODE: dict[Action, Permission] = dict.fromkeys(FOR_AGENTS, "allow")
"""What the author wrote is permitted. Hosts still pass the address guard, and patches need the scope ``operate``."""


def default_for(action: Action, *, agent: str) -> Permission:
    """Return the default for an agent, or with an empty name for the author's code."""
    return FOR_AGENTS[action] if agent else FOR_CODE[action]
