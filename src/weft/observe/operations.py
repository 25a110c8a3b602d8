"""The operations of a run, as views show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from weft.core import events as e
from weft.errors import Failure
from weft.ports.store import StoredEvent


class Operation(msgspec.Struct, gc=False):
    """One recorded operation. ``what`` names its subject, for example a step, a question or a child workflow."""

    number: int
    location: str
    kind: str
    what: str
    started: int
    status: str = "open"
    attempts: int = 1
    attempts_max: int = 0
    rounds: int = 0
    due: int = 0
    ended: int | None = None
    output: bytes = b"null"
    failure: Failure | None = None
    child: str = ""
    idle: str = ""
    """Why no worker is performing the open operation. Empty if one is, or if this was not checked."""
    why: str = ""
    """Why the operation was skipped or is still open, or which run its result came from."""


Keep = Callable[[Operation], Operation]
"""Adds an operation as the newest one at its location."""
NoteChange = Callable[[Operation], None]
"""Notes an operation that an event changed in addition to the one that it is about."""


class StyleOperations(Protocol):
    """The operations that only runs of one style have."""

    @property
    def handles(self) -> frozenset[type]:
        """The classes of the events that the style may handle."""
        ...

    def apply(self, event: Any, stored: StoredEvent) -> Operation | None:
        """Apply an event. Returns the operation that it began or changed; None if the style does not handle it."""
        ...

    def reopen(self, steps: Sequence[str]) -> list[int]:
        """Reopen steps for a retry. Returns the operations to drop."""
        ...


class NoOperations:
    """The operations of a style that adds none."""

    handles: frozenset[type] = frozenset()

    def apply(self, event: Any, stored: StoredEvent) -> Operation | None:
        return None

    def reopen(self, steps: Sequence[str]) -> list[int]:
        return []


def new_operation(event: Any, location: str, stored: StoredEvent) -> Operation:
    """Return the operation that begins with an event."""
    if type(event) is e.TaskScheduled:
        why = event.again.confirm if event.again is not None else ""
        attempts_max = event.policy.attempts_max
        return Operation(stored.seq, location, "step", event.step, stored.at, attempts_max=attempts_max, why=why)
    kind, what = _title(event)
    operation = Operation(stored.seq, location, kind, what, stored.at, due=getattr(event, "due", 0))
    if isinstance(event, e.ChildStarted):
        operation.child = event.run_id
    return operation


def end(operation: Operation, status: str, at: int, output: bytes = b"null") -> None:
    """Mark an operation as ended."""
    operation.status, operation.ended, operation.output = status, at, output


def _title(event: Any) -> tuple[str, str]:
    match event:
        case e.TimerSet():
            return "sleep", ""
        case e.MessageAwaited(names=names):
            return "receive", " or ".join(names) or "any"
        case e.MessageAnswered():
            return "answer", ""
        case e.AskOpened(title=title):
            return "ask", title
        case e.ChildStarted(workflow=workflow):
            return "child", workflow
        case e.ValueRecorded(of=of):
            return of, ""
        case e.RaceDecided(winner=winner):
            return "race", winner
        case e.AttributesSet(attributes=attributes):
            return "set", ", ".join(attributes)
    return "entry", ""
