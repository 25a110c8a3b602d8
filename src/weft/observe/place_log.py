"""The places of a run, as they stood after any of its events.

A place is one operation of the history, such as an attempted step or an open question. The history knows how an
operation stands now; the place log also keeps every change, so that views can go back in time without reading the log
again.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from weft.core import events as e
from weft.observe.box_counts import BoxCounts
from weft.observe.event_parts import kind_of
from weft.observe.history import History
from weft.observe.key_counts import BETWEEN_MIN, KeyCounts
from weft.observe.operations import Operation
from weft.observe.places import DROPPED, PlaceChange, RunPlace, box_of, mark_of
from weft.ports.store import StoredEvent

_seq = itemgetter(0)
_began = attrgetter("began")


class _Kinds(dict[type, str]):
    """The kinds of events by class."""

    def __missing__(self, event: type) -> str:
        self[event] = kind = sys.intern(kind_of(event))
        return kind


_KINDS = _Kinds()


class PartSubject(NamedTuple):
    """The kind of an event, and the place that it began or changed."""

    kind: str
    place: RunPlace | None


class PlaceLog:
    """The places of one run, built from its events in order."""

    def __init__(self, between: int = BETWEEN_MIN) -> None:
        """``between`` is how many changes lie between two checkpoints of its counts, at least."""
        self.history = History()
        self.places: list[RunPlace] = []
        """The places in the order in which they began. The first one has the number 1."""
        self.first = 1
        """The number of the first event. A log that was shortened does not begin with 1."""
        self.seq = 0
        self.times: list[int] = []
        """The time of each event, in milliseconds since 1970."""
        self.edges: KeyCounts[str] = KeyCounts(between)
        """How often tokens of a graph took each edge."""
        self.statuses: list[tuple[int, str]] = []
        """The statuses of the run, each with the number of the event that led to it."""
        self.drops: list[int] = []
        """The numbers of the events that dropped places."""
        self._changed: list[tuple[int, RunPlace]] = []
        self.counts = BoxCounts(self._changed, between)
        self._subjects: list[tuple[str | RunPlace | None, ...]] = []
        """For each record, the kind and the place of each of its events, in one tuple."""
        self._by_kind: dict[str, list[int]] = {}
        self._of: dict[int, RunPlace] = {}

    def add(self, stored: StoredEvent) -> None:
        """Add the next record of the log. Raises Corrupt if it cannot be decoded, and then changes nothing."""
        history = self.history
        events = history.unfold(stored)
        seq, at = stored.seq, stored.at
        if not self.times:
            self.first = seq
        self.seq = seq
        self.times.append(at)
        subjects: tuple[str | RunPlace | None, ...] = ()
        for event in events:
            operation = history.apply(event, stored)
            place = self._record_standing(operation, seq, at) if operation is not None else None
            for other in history.also_changed:
                if id(other) in self._of:
                    self._record_standing(other, seq, at)
            kind = _KINDS[type(event)]
            subjects += (kind, place)
            numbers = self._by_kind.get(kind)
            if numbers is None:
                numbers = self._by_kind[kind] = []
            numbers.append(seq)
            if type(event) is e.NodeRouted:
                for taken in event.taken:
                    self.edges.add(seq, taken.edge)
        self._subjects.append(subjects)
        if not self.statuses or self.statuses[-1][1] != history.status:
            self.statuses.append((seq, history.status))

    def _record_standing(self, operation: Operation, seq: int, at: int) -> RunPlace:
        """Record how an operation stands, if that is new. Returns its place."""
        place = self._of.get(id(operation))
        if place is None:
            place = RunPlace(len(self.places) + 1, operation, box_of(operation.location), [])
            self._of[id(operation)] = place
            self.places.append(place)
        status = operation.status
        if self.history.dropped and self.history.is_dropped(operation):
            status = DROPPED
            if not self.drops or self.drops[-1] != seq:
                self.drops.append(seq)
        mark = mark_of(operation, status, at)
        changes = place.changes
        if changes and changes[-1].seq == seq:
            changes.pop()
        if changes:
            last = changes[-1]
            if (
                last.status == status
                and last.mark == mark
                and last.attempts == operation.attempts
                and last.due == operation.due
                and last.why == operation.why
                and last.rounds == operation.rounds
                and last.failure is operation.failure
                and last.output is operation.output
            ):
                return place
        changes.append(
            PlaceChange(
                seq,
                at,
                status,
                operation.attempts,
                operation.due,
                operation.why,
                operation.rounds,
                operation.failure,
                operation.output,
                mark,
            )
        )
        self._changed.append((seq, place))
        return place

    def until(self, seq: int) -> Sequence[RunPlace]:
        """Return the places that had begun with an event or before, oldest first."""
        return self.places if seq >= self.seq else self.places[: self.begun(seq)]

    def begun(self, seq: int) -> int:
        """Return how many places had begun with an event or before."""
        return len(self.places) if seq >= self.seq else bisect_right(self.places, seq, key=_began)

    def place_at(self, number: int) -> RunPlace | None:
        """Return the place to which the entry with this number belongs, as the state of the run numbers entries."""
        operation = self.history.operations.get(number)
        return self._of.get(id(operation)) if operation is not None else None

    def changed_since(self, seq: int) -> list[RunPlace]:
        """Return the places that changed after an event, in the order in which they began."""
        begin = bisect_right(self._changed, seq, key=_seq)
        found = {place.number: place for _, place in self._changed[begin:]}
        return [found[number] for number in sorted(found)]

    def time_of(self, seq: int) -> int:
        """Return the time of an event."""
        return self.times[max(self.first, min(seq, self.seq)) - self.first] if self.times and seq else 0

    def status_of(self, seq: int) -> str:
        """Return the status of a code run after an event. Other styles have more events that change it."""
        return self.statuses[bisect_right(self.statuses, seq, key=_seq) - 1][1]

    def subjects_of_record(self, seq: int) -> tuple[PartSubject, ...]:
        """Return the kinds of the events of a record, and their places."""
        found = self._subjects[seq - self.first]
        return tuple(map(PartSubject, found[::2], found[1::2]))  # type: ignore[arg-type]  # kinds and places alternate

    def numbers_of(self, kind: str) -> Sequence[int]:
        """Return the numbers of the events of a kind, in order."""
        return self._by_kind.get(kind, ())
