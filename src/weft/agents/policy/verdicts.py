"""What a policy is asked, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

Action = Literal["tool", "model", "host", "secret", "step", "workflow", "route", "patch"]
Permission = Literal["allow", "ask", "deny"]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wants to do something."""

    action: Action
    name: str
    """The tool, model, host, secret, step, workflow or node, or the path of a patch's operation."""
    agent: str = ""
    workflow: str = ""
    caller: str = ""
    """The workflow that asked the agent. Rules about either workflow apply."""
    node: str = ""
    """The node that does it, or that asked the agent."""
    tenant: str = ""
    user: str = ""
    roles: tuple[str, ...] = ()
    args: Mapping[str, Any] = {}
    attributes: Mapping[str, Any] = {}
    spent: Mapping[str, Any] = {}
    """What the run of an agent has spent by itself so far, by unit. Known where it asks for tools and models."""
    agents: int = 0
    """How many agent nodes the workflow has. Known where runs start."""


class PolicyVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the policy says, and which rule decided."""

    permission: Permission
    of: tuple[str, ...] = ()
    """Who is asked, if the rule says so."""
    rule: str = ""
    """The rule that decided, as text; empty if it was the default."""
    version: str = ""
    """The version of the policy."""


class ReadPolicy(Protocol):
    """A policy that was read."""

    def verdict(self, asked: Asked, default: Permission) -> PolicyVerdict:
        """Say whether this is permitted. Deny beats ask, ask beats allow; without a rule it is the default."""
        ...
