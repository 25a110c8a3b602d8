"""Facts: how a step says what it needs and gives, and what a goal that was reached gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from weft.authoring.policies import Duration
from weft.core import values
from weft.core.goal.definitions import Script
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.authoring.steps import Step

R = TypeVar("R")
Collect = Literal["first", "last", "some", "all", "none"]
When = str | Script
"""A predicate: CEL text, or ``weft.lua(…)``, ``weft.ale(…)``."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The fact that a parameter reads, and which of its values: ``Annotated[str, weft.Fact("email", collect="last")]``.

    ``deadline`` (a duration, or "wait") is how long an optional one is waited for once the step could start.
    """

    name: str | None = None
    collect: Collect = "first"
    match: When | None = None
    deadline: Duration | Literal["wait"] | None = None


@dataclass(frozen=True, slots=True)
class Each:
    """One work item per element of a fact: ``Annotated[str, weft.Each("users")]``. Several of them multiply."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant for a parameter: ``Annotated[str, weft.Const("EUR")]``."""

    value: Any


def lua(source: str) -> Script:
    """Write a predicate in Lua."""
    return Script(source, "lua")


def ale(source: str) -> Script:
    """Write a predicate in Ale."""
    return Script(source, "ale")


class Facts(Mapping[str, Any]):
    """The result of a goal run: ``facts["total"]``, or ``facts.of(step)`` for what a goal step returned."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.result: dict[str, Any] = dict(body.get("result") or {})
        """The outputs of the goals themselves."""
        self.skipped: list[str] = list(body.get("skipped") or [])
        """Goals that a predicate or a gate has skipped: an answer too."""
        self._facts: dict[str, Any] = dict(body.get("facts") or {})
        self.returned: dict[str, Any] = dict(body.get("of") or {})
        """What each goal step returned, by the name of the step."""

    def of(self, step: Step[..., R]) -> R:
        """Return what a goal step returned, typed. Raises UsageError if it is not one of the goals or was skipped."""
        name = step.body.name
        if name not in self.returned:
            why = "was skipped" if name in self.skipped else "is not one of the goals"
            raise UsageError(f"{name} {why}, so there is no result of it.", hint="Facts are there by name: facts[…].")
        raw = values.encode(self.returned[name])
        result: R = step.signature.result.decode(raw, what=f"{name} returned")
        return result

    def __getitem__(self, name: str) -> Any:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return f"<weft facts {', '.join(self._facts)}>"
