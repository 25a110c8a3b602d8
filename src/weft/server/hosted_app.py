"""The protocol of an application that the server serves. The server does not import the application itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core.goal.plan import GoalPlan
from weft.graphs.load import LoadedGraph


class HostedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow that is registered here. ``input`` is the JSON Schema of its input."""

    name: str
    version: str
    style: str
    description: str = ""
    input: Mapping[str, Any] | None = None
    where: str = ""
    """The file and line of its code: ``app.py:22``."""
    goals: Sequence[str] = ()
    """The steps whose results it wants, if it is a goal."""
    offered: bool = False
    """Whether MCP clients may start it."""


class Hosted(Protocol):
    """An application whose workflows the server shows."""

    def workflows(self) -> Sequence[HostedWorkflow]:
        """Return all registered workflows, by name."""
        ...

    def result_schema(self, workflow: HostedWorkflow) -> Mapping[str, Any] | None:
        """Return the JSON Schema of a workflow's result; None if it is not known."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        """Plan how to reach these goals. Raises UnknownStep."""
        ...

    def freeze(self, goals: Sequence[str], given: Sequence[str], name: str) -> LoadedGraph:
        """Return a graph that does what the plan of these goals does. Raises UnknownStep, BadPlan, BadGraph."""
        ...
