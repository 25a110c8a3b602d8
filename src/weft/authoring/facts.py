"""The result of a goal run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from weft.authoring.steps import Step
from weft.core import values
from weft.errors import UsageError

R = TypeVar("R")


class Facts(Mapping[str, Any]):
    """The result of a goal run: ``facts["total"]``, or ``facts.of(step)`` for the result of a goal step."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.result: dict[str, Any] = dict(body.get("result") or {})
        """The outputs of the goals."""
        self.skipped: list[str] = list(body.get("skipped") or [])
        """The goals that were skipped because of a predicate or a gate. This is not a failure."""
        self._facts: dict[str, Any] = dict(body.get("facts") or {})
        self.returned: dict[str, Any] = dict(body.get("of") or {})
        """The result of each goal step, by the name of the step."""

    def of(self, step: Step[..., R]) -> R:
        """Return the typed result of a goal step. Raises UsageError if it is not one of the goals or was skipped."""
        name = step.body.name
        if name not in self.returned:
            why = "was skipped" if name in self.skipped else "is not one of the goals"
            raise UsageError(f"{name} {why}, so it has no result.", hint="Read single facts with facts[name].")
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
