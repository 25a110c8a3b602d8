"""The state of a goal run: its facts, its steps, and its open work items.

The plan is stored as it was recorded. The counts in ``need_counts`` follow from plan and state, so they are not stored.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.events import NULL
from weft.core.goal.definitions import StepDef
from weft.core.goal.plan import Excluded
from weft.core.run.state import State, Undo
from weft.errors import Failure

StepStatus = Literal["pending", "active", "completed", "failed", "skipped"]
OVER_STEP: frozenset[str] = frozenset({"completed", "failed", "skipped"})


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value of a fact, with the steps whose ``match`` accepts it. A given value has the provider "".

    ``broken`` has the errors of the steps whose ``match`` could not be evaluated.
    """

    value: Raw
    provider: str = ""
    matched: list[str] = []
    broken: dict[str, str] = {}


class StepRun(msgspec.Struct, omit_defaults=True):
    """A step of a run. Its items are numbered from 0, and those from ``index_next`` on have not begun."""

    status: StepStatus = "pending"
    why: str = ""
    failure: Failure | None = None
    lost: str = ""
    """The required fact whose loss made the step fail."""
    inputs: Raw = NULL
    items: int = 0
    fan_out: bool = False
    index_next: int = 0
    active: int = 0
    """How many items have a slot."""
    left: int = 0
    """How many items are not over."""
    open: dict[int, int] = {}
    """The items in progress or waiting for a retry, with the number of their task, child or question."""
    due: list[int] = []
    """Items whose retry is due, lowest first."""
    ended: list[int] = []
    """Items that began and will never have a result, unless the run is retried."""
    again: list[int] = []
    """Items that a retry of the run must repeat, lowest first."""
    results: dict[int, Raw] = {}
    """Raw results by item. Those of goals, and of steps that did not complete, are kept until the end."""
    answered: int = 0
    """The number of the event with the latest result."""
    decided: dict[str, int] = {}
    """Optional needs whose deadline has passed, and how many values they may use."""
    windows: dict[str, int] = {}
    """Optional needs that the step waits for, with the timer of their deadline."""
    undo: list[Undo] = []
    gave: list[str] = []
    """The facts that the step has given, whether or not their values were kept."""
    outputs: dict[str, Raw] = {}
    """The outputs of a goal."""
    replaced: StepDef | None = None
    """The definition under which the step began, if a patch of the failed run has replaced it."""
    renewed: dict[str, int] = {}
    """By location, the number in the keys of items, if the step was replaced after it began."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A work item: a step, and the index of the item."""

    step: str
    index: int


class Window(msgspec.Struct, frozen=True, array_like=True):
    """An optional need that a step waits for until its deadline."""

    step: str
    fact: str


class PlanRevision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The goals and definitions before a patch: ``steps`` has those that it changed, ``new`` the ids that it added.

    ``satisfied`` has the goals without a definition, because given facts satisfy them.
    """

    goals: list[str]
    steps: dict[str, StepDef] = {}
    new: list[str] = []
    satisfied: dict[str, Excluded] = {}


class GoalState(State, kw_only=True, omit_defaults=True):
    """The state of a goal run."""

    plan: Raw = NULL
    begun: bool = False
    """Whether all given values and the matches on them are known."""
    facts: dict[str, list[Value]] = msgspec.field(default_factory=dict)
    steps: dict[str, StepRun] = msgspec.field(default_factory=dict)
    places: dict[int, Place] = msgspec.field(default_factory=dict)
    """The work item of each task, child or question."""
    deadlines: dict[int, Window] = msgspec.field(default_factory=dict)
    dropped: list[str] = msgspec.field(default_factory=list)
    """Steps that were not over when the run failed or was cancelled."""
    definitions: dict[str, StepDef] = msgspec.field(default_factory=dict)
    """Steps outside the plan that a patch can plan: they were planned before, or an earlier patch brought them."""
    plan_revisions: list[PlanRevision] = msgspec.field(default_factory=list)
    """What each patch has changed, so that it can be undone."""
    read: list[str] = msgspec.field(default_factory=list)
    """Facts read by steps that have been replaced, reopened or removed since."""
    unread: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """By fact that a patch gave, the steps that had begun before. They have not read that value."""


_decoder: msgspec.json.Decoder[GoalState] = msgspec.json.Decoder(GoalState)
_encode = msgspec.json.Encoder().encode


def encode_state(state: GoalState) -> bytes:
    """Encode the state as a snapshot."""
    return _encode(state)


def restore_state(snapshot: bytes) -> GoalState:
    """Restore the state of a run from a snapshot with the same ``FOLD`` version."""
    return _decoder.decode(snapshot)


def copy_state(state: GoalState) -> GoalState:
    """Return an independent copy of the state."""
    return restore_state(encode_state(state))
