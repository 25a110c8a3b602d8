"""What a host can do: the steps it can perform and the programs it can run, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from weft.core.events import Policy, Style, UndoPlan
from weft.core.goal.definitions import StepDef
from weft.core.goal.plan import GoalPlan
from weft.core.ids import Millis
from weft.errors import WeftError
from weft.ports.store import Definition
from weft.runtime.programs import AnyProgram
from weft.steps.base import StepBody


class Callee(msgspec.Struct, frozen=True):
    """What the name of a workflow means on a host."""

    version: str
    style: Style
    timeout_ms: int = 0


class HostCatalogue(Protocol):
    """Read at every hand-out, so that what is registered later is found too."""

    def step(self, name: str) -> StepBody | None: ...

    def step_policy(self, step: str) -> Policy | None: ...

    def step_undo(self, step: str) -> UndoPlan | None: ...

    def step_takes(self, step: str) -> list[str] | None: ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        """What reaching these goals takes. Raises UnknownStep."""
        ...

    def callee(self, workflow: str) -> tuple[str, Style] | None:
        """The version of a workflow that is started now, and its style."""
        ...

    def steps(self) -> Sequence[str]:
        """The names of all steps it can perform."""
        ...

    def queues(self) -> Sequence[str] | None:
        """The queues it works for; None: whatever the queue, all steps that it has."""
        ...

    def program(self, workflow: str, version: str) -> AnyProgram | None: ...

    def programs(self) -> Sequence[tuple[str, str]]:
        """All (workflow, version) pairs: what this host may claim. An empty version: runs that were started by name."""
        ...

    def resolve(self, workflow: str, version: str) -> Callee | None:
        """What is registered under this name, in this version (empty: the newest)."""
        ...

    def definitions(self, now: Millis) -> Sequence[Definition]:
        """The workflows that are data: what the store should have of them."""
        ...

    def learn(self, definition: Definition) -> None:
        """A version that was hosted before: runs that began with it can go on here."""
        ...

    def learn_other(self, definition: Definition) -> bool:
        """A graph of the store that no program here names, such as a frozen plan: it runs here if all its steps do."""
        ...

    def planned(self) -> Sequence[StepDef]:
        """The steps that it plans goals with."""
        ...

    def planned_step(self, name: str) -> StepDef | None:
        """One of them."""
        ...

    def learn_steps(self, steps: Mapping[str, StepDef]) -> Sequence[WeftError]:
        """Plan with the steps of the store too, and no longer with those that left it; what stands against some."""
        ...
