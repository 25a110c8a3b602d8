"""What a goal run is now: its facts, its steps, and the work items that are open.

The plan is held as it was recorded. Counts that follow from all this are not part of the state: `flow` keeps them
beside it and can count again.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.events import NULL
from weft.core.run.state import State, Undo
from weft.errors import Failure

StepStatus = Literal["pending", "active", "completed", "failed", "skipped"]
OVER_STEP: frozenset[str] = frozenset({"completed", "failed", "skipped"})


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value of a fact; provider "": it was given. Whose match it passes, and whose match failed on it."""

    value: Raw
    provider: str = ""
    matched: list[str] = []
    broken: dict[str, str] = {}


class StepRun(msgspec.Struct, omit_defaults=True):
    """A planned step in a run. Items are numbered from 0; those from ``index_next`` on were never begun."""

    status: StepStatus = "pending"
    why: str = ""
    failure: Failure | None = None
    lost: str = ""
    """The fact whose loss failed it."""
    inputs: Raw = NULL
    items: int = 0
    fan_out: bool = False
    index_next: int = 0
    active: int = 0
    """How many items hold a slot."""
    left: int = 0
    """How many are not over."""
    open: dict[int, int] = {}
    """Items under way or waiting for a retry: the number of their task, child or question."""
    due: list[int] = []
    """Items whose retry is due, lowest first."""
    ended: list[int] = []
    """Items that were begun and have no result and never will, unless the run is tried again."""
    again: list[int] = []
    """Items of a run that is tried again which are to be begun anew, lowest first."""
    results: dict[int, Raw] = {}
    """Raw results by item; those of goals, and of steps that did not complete, are kept to the end."""
    answered: int = 0
    """The number of the record that has the last of them."""
    decided: dict[str, int] = {}
    """Optionals whose deadline has passed, and from how many values they may take."""
    windows: dict[str, int] = {}
    """Optionals that are waited for, and the timer that ends it."""
    undo: list[Undo] = []
    gave: list[str] = []
    """The facts it has given, whether or not their values were kept."""
    outputs: dict[str, Raw] = {}
    """A goal's own."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A work item."""

    step: str
    index: int


class Window(msgspec.Struct, frozen=True, array_like=True):
    """An optional that is waited for."""

    step: str
    fact: str


class GoalState(State, kw_only=True, omit_defaults=True):
    """A goal run."""

    plan: Raw = NULL
    begun: bool = False
    """Every given value is known, and every match on it."""
    facts: dict[str, list[Value]] = msgspec.field(default_factory=dict)
    steps: dict[str, StepRun] = msgspec.field(default_factory=dict)
    places: dict[int, Place] = msgspec.field(default_factory=dict)
    """Which work item a task, child or question is."""
    deadlines: dict[int, Window] = msgspec.field(default_factory=dict)
    dropped: list[str] = msgspec.field(default_factory=list)
    """Steps that were not over when the run failed or was cancelled."""


_decoder: msgspec.json.Decoder[GoalState] = msgspec.json.Decoder(GoalState)
_encode = msgspec.json.Encoder().encode


def encode_state(state: GoalState) -> bytes:
    """A snapshot."""
    return _encode(state)


def restore_state(snapshot: bytes) -> GoalState:
    """A run's state from a snapshot of this fold."""
    return _decoder.decode(snapshot)


def copied(state: GoalState) -> GoalState:
    """The same state, to be changed without changing this one."""
    return restore_state(encode_state(state))
