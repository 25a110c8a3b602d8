"""The base of workflows of any style: they have a name, a version, an input and a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Raw

from weft.core.budgets import BudgetLimits
from weft.core.events import ABSENT, Style
from weft.core.goal.plan import GoalPlan as CorePlan
from weft.runtime.service import RunService
from weft.steps.codec import Codec

R = TypeVar("R")


class RunnableGroup(Protocol):
    """What a workflow, graph or goal uses of the group that it is registered in."""

    @property
    def service(self) -> RunService:
        """The run service. Raises NotRunning."""
        ...

    def root(self) -> RunnableGroup:
        """Return the group of the app that includes this group, or else the group itself."""
        ...

    def invocation(self, call: Any, given: Mapping[str, Any] | None) -> Invocation:
        """Return the invocation of a call, or of a workflow (or its name) with a mapping of arguments."""
        ...

    def achievement(self, goals: Sequence[Any], given: Mapping[str, Any]) -> Invocation:
        """Return the invocation for goals that are not registered under a name."""
        ...

    def make_plan(self, goals: Sequence[str], given: Iterable[str]) -> CorePlan:
        """Return the plan for goals. Raises UnknownStep, BadPlan."""
        ...

    def step_parameters(self, step: str) -> list[str] | None:
        """Return the names of a step's parameters; None if there is no such step."""
        ...

    async def run_and_wait(self, invocation: Invocation) -> Any:
        """Start a run and return its result."""
        ...


class Runnable(Generic[R]):
    """The base of code workflows, graphs and goals."""

    name: str
    style: Style = "code"
    group: RunnableGroup | None = None
    budget: BudgetLimits | None = None
    """The budget of its runs, if their starts do not give another."""

    @property
    def version(self) -> str:
        """The version that a new run uses. Raises UsageError if the workflow is not registered."""
        raise AssertionError("subclasses override this")

    @property
    def timeout_ms(self) -> int:
        return 0

    @property
    def result(self) -> Codec[R]:
        """The codec of the result."""
        raise AssertionError("subclasses override this")

    def plan_for(self, given: bytes) -> Raw:
        """Return the plan of a run, if its style plans at the start."""
        return ABSENT

    def given(self, input: Mapping[str, Any]) -> bytes:
        """Check an input and return it as JSON. Raises BadValue."""
        raise AssertionError("subclasses override this")


class Invocation:
    """A workflow and its input: a call that is not awaited yet."""

    __slots__ = ("given", "workflow")

    def __init__(self, workflow: Runnable[Any], given: bytes) -> None:
        self.workflow = workflow
        self.given = given

    def plan(self) -> Raw:
        """Return the plan of a goal run; absent for other styles. Raises BadPlan, UnknownStep."""
        return self.workflow.plan_for(self.given)
