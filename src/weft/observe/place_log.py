"""The places of a run, as they stood after any of its events.

A place is one operation of the history, such as an attempted step or an open question. The history knows how an
operation stands now; the place log also keeps every change, so that views can go back in time without reading the log
again.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.core import events as e
from weft.observe.event_parts import EventPart
from weft.observe.history import History
from weft.observe.operations import Operation
from weft.observe.places import DROPPED, PlaceChange, RunPlace, box_of
from weft.ports.store import StoredEvent

_WIDE = (
    e.RunCompleted,
    e.RunFailedEvent,
    e.RunCancelledEvent,
    e.RunRetried,
    e.EntriesDropped,
    e.ResultSet,
    e.StepFailedEvent,
    e.StepSkipped,
    e.RunPatched,
)
"""Events that may change many operations."""


class PlaceLog:
    """The places of one run, built from its events in order."""

    def __init__(self) -> None:
        self.history = History()
        self.places: dict[int, RunPlace] = {}
        """The places by number. Numbers rise in the order in which places began."""
        self.seq = 0
        self.times: list[int] = []
        """The time of each event, in milliseconds since 1970."""
        self.edges: list[tuple[int, str]] = []
        """The edges that tokens of a graph took, with the number of the event."""
        self._of: dict[int, RunPlace] = {}

    def add(self, stored: StoredEvent) -> list[EventPart]:
        """Add the next record of the log. Returns its events."""
        self.seq = stored.seq
        self.times.append(stored.at)
        found = self.history.add(stored)
        wide = False
        for part, operation in found:
            if operation is not None:
                self._note(operation, stored)
            wide = wide or isinstance(part.event, _WIDE)
            if isinstance(part.event, e.NodeRouted):
                self.edges += [(stored.seq, taken.edge) for taken in part.event.taken]
        if wide:
            self._compare(stored)
        return [part for part, _ in found]

    def _note(self, operation: Operation, stored: StoredEvent, status: str = "") -> None:
        """Record how an operation stands, if that is new."""
        place = self._of.get(id(operation))
        if place is None:
            place = self._of[id(operation)] = RunPlace(operation, box_of(operation.location), [])
            self.places[stored.seq] = place
        now = PlaceChange(
            stored.seq,
            stored.at,
            status or operation.status,
            operation.attempts,
            operation.due,
            operation.why,
            operation.rounds,
            operation.failure,
            operation.output,
        )
        if place.changes and place.changes[-1].seq == stored.seq:
            place.changes.pop()
        last = place.changes[-1] if place.changes else None
        if last is None or _differs(last, now):
            place.changes.append(now)

    def _compare(self, stored: StoredEvent) -> None:
        """Record every operation that an event changed or dropped."""
        for place in self.places.values():
            is_dropped = place.operation.number in self.history.dropped
            self._note(place.operation, stored, DROPPED if is_dropped else "")

    def until(self, seq: int) -> Iterable[RunPlace]:
        """Return the places that had begun with an event or before, oldest first."""
        return (place for number, place in self.places.items() if number <= seq)

    def time_of(self, seq: int) -> int:
        """Return the time of an event."""
        return self.times[min(seq, len(self.times)) - 1] if self.times and seq else 0


def _differs(one: PlaceChange, other: PlaceChange) -> bool:
    fields = ("status", "attempts", "due", "why", "rounds")
    return (
        any(getattr(one, name) != getattr(other, name) for name in fields)
        or one.failure is not other.failure
        or one.output is not other.output
    )
