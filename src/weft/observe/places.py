"""The places of a run: its operations, as they stood after any event."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

import msgspec

from weft.errors import Failure
from weft.observe.operations import Operation
from weft.observe.pictures import Mark

_seq = attrgetter("seq")
DROPPED = "dropped"
"""The status of a place that a retry or an edit has removed from the run."""
HIDDEN = frozenset({"now", "random", "uuid", "set", "version"})
"""Kinds of places without a box: values that the code asks for on its way."""
_PATIENT = frozenset({"ask", "sleep", "receive", "child", "timer", "wait"})
"""Kinds of operations that wait for something while they are open."""
_MARKS: dict[str, Mark] = {"done": "done", "failed": "failed", "skipped": "skipped", "cancelled": "skipped"}


class PlaceChange(msgspec.Struct, frozen=True, gc=False):
    """How a place stood after an event."""

    seq: int
    at: int
    status: str
    attempts: int = 1
    due: int = 0
    why: str = ""
    rounds: int = 0
    failure: Failure | None = None
    output: bytes = b"null"
    mark: Mark = "working"


class RunPlace(msgspec.Struct, gc=False):
    """One operation of a run and its changes, oldest first. ``box`` is the box of the picture that it belongs to."""

    number: int
    """The number of the place among those of its run, in the order in which they began, from 1."""
    operation: Operation
    box: str
    changes: list[PlaceChange]

    @property
    def began(self) -> int:
        """The number of the event with which it began."""
        return self.changes[0].seq

    def standing(self, seq: int) -> PlaceChange | None:
        """Return how the place stood after an event; None if it had not begun, or was dropped."""
        found = self.changes[-1]
        if found.seq > seq:
            index = bisect_right(self.changes, seq, key=_seq)
            if not index:
                return None
            found = self.changes[index - 1]
        return found if found.status != DROPPED else None

    def attempts(self, seq: int) -> Iterator[PlaceChange]:
        """Yield the attempts that failed before or with an event."""
        known: Failure | None = None
        for change in self.changes:
            if change.seq <= seq and change.failure is not None and change.failure is not known:
                known = change.failure
                yield change


def mark_of(operation: Operation, status: str, at: int) -> Mark:
    """Return the mark of an operation that stands like this at a moment."""
    if status != "open":
        return _MARKS.get(status, "done")
    retries = operation.due > at and operation.failure is not None
    return "waiting" if retries or operation.kind in _PATIENT else "working"


def box_of(location: str) -> str:
    """Return the box that a location belongs to: the location without rounds, items and counts."""
    if "/" not in location and "#" not in location and location[:1] not in ("~", "&"):
        return location.removesuffix("!undo")
    plain = location.removesuffix("!undo")
    parts = [part.partition("#")[0] for part in plain.split("/") if part[:1] not in ("~", "&") and not part.isdigit()]
    return "/".join(parts) or plain
