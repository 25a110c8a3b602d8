"""The protocol of the application that the server serves. The server does not import the app itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core.goal.plan import GoalPlan
from weft.runtime.service import RunService, StartResult


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow that is registered here. ``input`` is the JSON Schema of its input."""

    name: str
    version: str
    style: str
    description: str = ""
    input: Mapping[str, Any] | None = None


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A start by name: what ``app.start`` takes."""

    workflow: str
    input: Mapping[str, Any] = {}
    goals: Sequence[str] = ()
    """Steps whose results are wanted; ``workflow`` is then only part of the run's name."""
    version: str | None = None
    """None: the newest registered version."""
    id: str | None = None
    existing: str = "attach"
    attributes: Mapping[str, Any] = {}
    delay_ms: int = 0


class Hosted(Protocol):
    """An application whose runs the server serves."""

    @property
    def service(self) -> RunService:
        """Return the service for its runs. Raises NotRunning."""
        ...

    def workflows(self) -> Sequence[Known]:
        """Return all registered workflows, by name."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        """Plan how to reach these goals. Raises UnknownStep."""
        ...

    async def launch_named(self, order: Order) -> StartResult:
        """Start a workflow by its name. Raises UnknownWorkflow, BadValue, IdTaken."""
        ...
