"""Small values that workflows get back."""

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
    """It worked."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Err:
    """It failed for good; nothing was raised."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Winner(Generic[T_co]):
    """Who finished first in a race, and with what."""

    name: str
    value: T_co


@dataclass(frozen=True, slots=True)
class Answer(Generic[T_co]):
    """What people decided. ``form`` is what they filled in; it is only there if it was approved."""

    approved: bool
    by: list[str]
    reason: str
    form: T_co
    at: datetime


@dataclass(frozen=True, slots=True)
class Again(Generic[T_co]):
    """The loop goes on, with this state."""

    state: T_co


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """The loop is over, with this result."""

    value: T_co


Turn = Again[S] | Done[R]


def again(state: S) -> Again[S]:
    """Go round once more."""
    return Again(state)


def done(value: R) -> Done[R]:
    """Leave the loop."""
    return Done(value)
