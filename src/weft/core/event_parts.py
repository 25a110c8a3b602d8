"""Types used inside events: policies, undo plans, parents, and the routing of tokens."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.errors import Corrupt

NULL = Raw(b"null")
ABSENT = Raw(b"")
"""Stands for a missing value, because msgspec cannot read an optional ``Raw``."""

Style = Literal["code", "graph", "goal", "schedule"]
Effect = Literal["pure", "idempotent", "irreversible"]
Path = list[int | str]
"""A compact location: indexes into the run's name registry, each followed by its negated repeat number, if any.

A name that the full registry cannot take is written out."""


class LogEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=None):
    """The base class of all events. ``kind`` is the type of the event in JSON."""


class Policy(msgspec.Struct, frozen=True, omit_defaults=True, array_like=False):
    """The attempts, delays and limits of a task, recorded with it so that decisions need only the log."""

    attempts_max: int = 4
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    delay_ms: int = 200
    delay_ms_max: int = 30_000
    timeout_ms: int = 0
    effect: Effect = "idempotent"
    queue: str = "default"
    deadline_ms: int = 0
    """A limit for all attempts together, counted from when the task was scheduled."""
    agent: str = ""
    """The agent that calls the step as its tool. It may do only what the policy permits to this agent."""


DEFAULT_POLICY = Policy()
"""A shared object: an event with this policy omits it from its JSON."""


class UndoPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The step that undoes a completed task, and the names of the recorded values that are passed to it.

    If ``takes`` is None, the arguments are determined when the undo is scheduled.
    """

    step: str
    takes: list[str] | None
    policy: Policy = DEFAULT_POLICY
    defaults: Raw = ABSENT
    """The defaults of the undone step's parameters. They replace the arguments that the call left out."""


class Repetition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work that was dispatched before and is dispatched again, by its effect contract.

    Its key is that of ``place``, with ``~n`` if ``n`` is set.
    """

    place: str
    n: int = 0
    confirm: str = ""
    """Why a person must approve it first. Until then it is not dispatched."""
    kept: bool = False
    """Whether the earlier result is used. The next event has it, and nothing is dispatched."""


class Earlier(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work that was dispatched before, and is about to be repeated."""

    place: str
    """The place in its key."""
    n: int = 0
    """The number in its key (0: none)."""
    digest: str = ""
    """The digest of its step and input. If it is empty, the repeated work is the same."""
    output: Raw = ABSENT
    """Its recorded result, if it has one."""
    step: str = ""
    """Its step, if that must not be performed twice: then it is also found by step and input, at another place."""


class Parent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parent of a run, and the entry in the parent that waits for the child to end (0: none)."""

    uid: str
    entry: int = 0
    run_id: str = ""
    facts: bool = False
    """Whether the parent wants only the facts, by name, as the output of a goal run."""
    depth: int = 2
    """The number of runs from the root to the child, including both."""
    agents: int = 0
    """How many of the runs from the root to the parent, including both, are runs of agents."""
    workflow: str = ""
    """The workflow that started the child, itself or through agents."""
    node: str = ""
    """The node of that workflow, if it is a graph."""


class ForkedFrom(msgspec.Struct, frozen=True, omit_defaults=True):
    """The original of a fork, and the last event of it that the fork shares."""

    run: str
    uid: str
    seq: int
    trace: str = ""
    """The span of the original as a W3C traceparent, if its trace does not derive from its own uid."""


# --- graphs ------------------------------------------------------------------------------------------------------


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """An edge that is taken. If the edge opens a branch per item, ``items`` has the items."""

    edge: str
    items: list[Raw] | None = None


class Write(msgspec.Struct, frozen=True, array_like=True):
    """A value to write at a path, into the state or into the output of the innermost branch (scope ``here``)."""

    scope: str
    path: list[str]
    value: Raw


class EdgeVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of an edge's condition, and the values that the condition read."""

    edge: str
    taken: bool
    seen: dict[str, Any] = {}


def unreadable(what: str, error: Exception) -> Corrupt:
    """Make the error for stored data of a kind that this version does not know."""
    hint = "The data is damaged, or was written by a newer Weft. The run is held; other runs are not affected."
    return Corrupt(f"{what} cannot be read ({error}).", hint=hint)
