"""The pieces that events are made of: policies, plans of undo, who started whom, and the choices of a token."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

NULL = Raw(b"null")
ABSENT = Raw(b"")
"""Stands where a value may be and is not; an optional `Raw` could be written and never read."""

Style = Literal["code", "graph", "goal"]
Effect = Literal["pure", "idempotent", "irreversible"]
Path = list[int | str]
"""A location, compactly: indexes into the run's name registry, each followed by minus its repeat number if it has one.

A name stands for itself where the registry is full."""


class LogEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=None):
    """The base of all events; ``kind`` names them in JSON."""


class Policy(msgspec.Struct, frozen=True, omit_defaults=True, array_like=False):
    """How a task is tried: recorded with it, so that a decision needs nothing but the log."""

    attempts_max: int = 4
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    delay_ms: int = 200
    delay_ms_max: int = 30_000
    timeout_ms: int = 0
    effect: Effect = "idempotent"
    queue: str = "default"
    deadline_ms: int = 0
    """For all attempts together, from the time it was scheduled."""


DEFAULT_POLICY = Policy()
"""One object, so that an event that has it leaves it out."""


class UndoPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The step that takes a completed task back, and which of the recorded values it is given.

    ``takes`` None: what it is given is worked out when it is undone.
    """

    step: str
    takes: list[str] | None
    policy: Policy = DEFAULT_POLICY
    defaults: Raw = ABSENT
    """The defaults of the undone step's parameters: what a call left out is given to its undo too."""


class Parent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who started a child run, and which entry there waits for its end (0: nobody does)."""

    uid: str
    entry: int = 0
    run_id: str = ""
    facts: bool = False
    """Of a goal run the parent wants the facts by name, and nothing else."""
    depth: int = 2
    """How many runs there are from the root down to the child, both included."""


# --- of graphs ---------------------------------------------------------------------------------------------------


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """An edge that fires; ``items``: one per branch, where it opens a branch per item."""

    edge: str
    items: list[Raw] | None = None


class Write(msgspec.Struct, frozen=True, array_like=True):
    """A value for the state, or for the innermost branch's output (``here``)."""

    scope: str
    path: list[str]
    value: Raw


class EdgeVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one edge's condition said, and the values it saw."""

    edge: str
    taken: bool
    seen: dict[str, Any] = {}
