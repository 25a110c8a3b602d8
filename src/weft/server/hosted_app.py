"""The protocol of an application that the server serves. The server does not import the application itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core.goal.plan import GoalPlan


class HostedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow that is registered here. ``input`` is the JSON Schema of its input."""

    name: str
    version: str
    style: str
    description: str = ""
    input: Mapping[str, Any] | None = None


class Hosted(Protocol):
    """An application whose workflows the server shows."""

    def workflows(self) -> Sequence[HostedWorkflow]:
        """Return all registered workflows, by name."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        """Plan how to reach these goals. Raises UnknownStep."""
        ...
