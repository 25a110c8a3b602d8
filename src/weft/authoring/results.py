"""The result types that operations of a workflow return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from weft.errors import Failure

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Ok(Generic[T_co]):
    """The result of a call that succeeded."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Err:
    """The failure of a call, as a value instead of an exception."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Winner(Generic[T_co]):
    """The branch that won a race, and its result."""

    name: str
    value: T_co


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """The decision of the people who were asked. ``form`` is what they filled in, if they approved."""

    approved: bool
    by: list[str]
    reason: str
    form: T_co
    at: datetime


@dataclass(frozen=True, slots=True)
class Again(Generic[T_co]):
    """Another round of ``ctx.loop``, with this state."""

    state: T_co


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """The end of ``ctx.loop``, with this result."""

    value: T_co


Turn = Again[S] | Done[R]


def again(state: S) -> Again[S]:
    """Continue the loop with this state."""
    return Again(state)


def done(value: R) -> Done[R]:
    """End the loop with this result."""
    return Done(value)
