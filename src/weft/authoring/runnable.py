"""What can be run: a workflow of any style, by its name and version, with an input and a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Raw

from weft.core.events import ABSENT, Style
from weft.steps.codec import Codec

if TYPE_CHECKING:
    from weft.authoring.group import Group

R = TypeVar("R")


class Runnable(Generic[R]):
    """The base of code workflows, graphs and goals."""

    name: str
    style: Style = "code"
    group: Group | None = None

    @property
    def version(self) -> str:
        """What a run of it pins. Raises UsageError if it belongs to no app."""
        raise AssertionError("each style has its own")

    @property
    def timeout_ms(self) -> int:
        return 0

    @property
    def result(self) -> Codec[R]:
        """How what it gives is read."""
        raise AssertionError("each style has its own")

    def plan_for(self, given: bytes) -> Raw:
        """What a run of it follows, where that is made at its start."""
        return ABSENT

    def given(self, input: Mapping[str, Any]) -> bytes:
        """An input as JSON, checked. Raises BadValue."""
        raise AssertionError("each style has its own")


class Invocation:
    """A workflow with its input: what a call stands for before it is awaited."""

    __slots__ = ("given", "workflow")

    def __init__(self, workflow: Runnable[Any], given: bytes) -> None:
        self.workflow = workflow
        self.given = given

    def plan(self) -> Raw:
        """The plan of a goal run, made now; nothing for other styles. Raises BadPlan, UnknownStep."""
        return self.workflow.plan_for(self.given)
