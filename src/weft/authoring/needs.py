"""The annotations with which a step declares the facts that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from weft.authoring.policies import Duration
from weft.core.goal.definitions import Script

Collect = Literal["first", "last", "some", "all", "none"]
When = str | Script
"""A predicate: CEL text, or ``weft.lua(…)``, ``weft.ale(…)``."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The fact that a parameter reads, and which of its values: ``Annotated[str, weft.Fact("email", collect="last")]``.

    ``deadline`` (a duration, or "wait") is how long a step that could start waits for an optional fact.
    """

    name: str | None = None
    collect: Collect = "first"
    match: When | None = None
    deadline: Duration | Literal["wait"] | None = None


@dataclass(frozen=True, slots=True)
class Each:
    """One work item per element of a fact: ``Annotated[str, weft.Each("users")]``. Several of them are combined."""

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
