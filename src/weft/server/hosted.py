"""What the server needs of the application whose runs it serves. The app satisfies it; the server does not know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core.goal.plan import GoalPlan
from weft.runtime.service import RunService, StartResult


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that is registered here, in one version. ``input``: JSON Schema of what it takes."""

    name: str
    version: str
    style: str
    description: str = ""
    input: Mapping[str, Any] | None = None


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A run that somebody wants: what ``app.start`` takes."""

    workflow: str
    input: Mapping[str, Any] = {}
    goals: Sequence[str] = ()
    """Steps whose outcome is wanted; then ``workflow`` only names the run."""
    version: str | None = None
    """None: the newest that is registered."""
    id: str | None = None
    existing: str = "attach"
    attributes: Mapping[str, Any] = {}
    delay_ms: int = 0


class Hosted(Protocol):
    """An application, hosted or about to be."""

    @property
    def service(self) -> RunService:
        """The way to its runs. Raises NotRunning."""
        ...

    def workflows(self) -> Sequence[Known]:
        """All that is registered, by name."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        """What reaching these goals takes. Raises UnknownStep."""
        ...

    async def launch_named(self, order: Order) -> StartResult:
        """Start what is registered under a name. Raises UnknownWorkflow, BadValue, IdTaken."""
        ...
