"""Workflows of any style: a name, a version, an input and a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Raw

from weft.core.events import ABSENT, Style
from weft.core.goal.plan import GoalPlan as CorePlan
from weft.runtime.service import RunService
from weft.steps.codec import Codec

R = TypeVar("R")


class RunnableGroup(Protocol):
    """What a workflow, graph or goal uses of the group that it is registered in."""

    @property
    def service(self) -> RunService:
        """The way to runs. Raises NotRunning."""
        ...

    def root(self) -> RunnableGroup:
        """Return the app, if the group is included in one."""
        ...

    def invocation(self, call: Any, given: Mapping[str, Any] | None) -> Invocation:
        """Return what is to be run: a call, or a workflow (or its name) with a mapping of arguments."""
        ...

    def achievement(self, goals: Sequence[Any], given: Mapping[str, Any]) -> Invocation:
        """Return a run of goals without a name of their own."""
        ...

    def make_plan(self, goals: Sequence[str], given: Iterable[str]) -> CorePlan:
        """Return the plan for goals. Raises UnknownStep, BadPlan."""
        ...

    def step_parameters(self, step: str) -> list[str] | None:
        """Return the parameters of a step; None if it is not known."""
        ...

    async def run_and_wait(self, invocation: Invocation) -> Any:
        """Start a run and return its result."""
        ...


class Runnable(Generic[R]):
    """The base of code workflows, graphs and goals."""

    name: str
    style: Style = "code"
    group: RunnableGroup | None = None

    @property
    def version(self) -> str:
        """The version that a run of it pins. Raises UsageError if it belongs to no app."""
        raise AssertionError("each style has its own")

    @property
    def timeout_ms(self) -> int:
        return 0

    @property
    def result(self) -> Codec[R]:
        """The codec of its result."""
        raise AssertionError("each style has its own")

    def plan_for(self, given: bytes) -> Raw:
        """Return the plan that a run follows, if one is made at its start."""
        return ABSENT

    def given(self, input: Mapping[str, Any]) -> bytes:
        """Check an input and return it as JSON. Raises BadValue."""
        raise AssertionError("each style has its own")


class Invocation:
    """A workflow with its input: the content of a call before it is awaited."""

    __slots__ = ("given", "workflow")

    def __init__(self, workflow: Runnable[Any], given: bytes) -> None:
        self.workflow = workflow
        self.given = given

    def plan(self) -> Raw:
        """Make the plan of a goal run; empty for other styles. Raises BadPlan, UnknownStep."""
        return self.workflow.plan_for(self.given)
