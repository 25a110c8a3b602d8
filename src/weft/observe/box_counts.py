"""How many places of each box stood how, after any event of a run, counted from checkpoints. Pure.

The counts follow the log of places in batches. A look back begins at a checkpoint and compares only the places that
changed since, so that it does not cost more in a run with many places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter

import msgspec

from weft.observe.box_standing import FIRST, BoxStanding
from weft.observe.places import HIDDEN, PlaceChange, RunPlace

_INDEX = {mark: number for number, mark in enumerate(FIRST)}
_WORKING, _WAITING, _FAILED, _DONE, _SKIPPED = (
    _INDEX[mark] for mark in ("working", "waiting", "failed", "done", "skipped")
)
_NONE = (0,) * len(FIRST)
_seq = itemgetter(0)
_done = attrgetter("done")

BoxKey = tuple[str, bool]
"""The id of a box, and whether the places are those that the picture does not show."""


class _Checkpoint(msgspec.Struct, frozen=True):
    """The counts after some of the changes, which end with the event ``seq``."""

    done: int
    seq: int
    boxes: Mapping[BoxKey, tuple[int, ...]]
    retrying: frozenset[int]


class _Tally:
    """How many places of each box have which mark, and which places have failed attempts."""

    def __init__(self, begin: _Checkpoint) -> None:
        self._begin = begin
        self.boxes: dict[BoxKey, list[int]] = {}
        """The boxes that differ from the checkpoint."""
        self.retrying = set(begin.retrying)
        self.compared = 0
        """How many places were compared so far."""

    def move(self, places: Iterable[RunPlace], since: int, seq: int) -> None:
        """Count places as they stood after an event, instead of after an earlier one."""
        for place in places:
            self.compared += 1
            before = place.standing(since) if place.changes[0].seq <= since else None
            after = place.standing(seq)
            if before is not after:
                self._move(place, before, after)

    def _move(self, place: RunPlace, before: PlaceChange | None, after: PlaceChange | None) -> None:
        key = (place.box, place.operation.kind in HIDDEN)
        counts = self.boxes.get(key)
        if counts is None:
            counts = self.boxes[key] = list(self._begin.boxes.get(key, _NONE))
        if before is not None:
            counts[_INDEX[before.mark]] -= 1
            self.retrying.discard(place.number)
        if after is not None:
            counts[_INDEX[after.mark]] += 1
            if after.attempts > 1 and after.status == "open":
                self.retrying.add(place.number)

    def all(self) -> dict[BoxKey, tuple[int, ...]]:
        return {**self._begin.boxes, **{key: tuple(counts) for key, counts in self.boxes.items()}}


class BoxCounts:
    """The standings of the boxes of one run. ``changed`` is the growing list of changed places, with their events."""

    def __init__(self, changed: Sequence[tuple[int, RunPlace]], between: int) -> None:
        self._changed = changed
        self._between = between
        self._checkpoints = [_Checkpoint(0, 0, {}, frozenset())]
        self._tally = _Tally(self._checkpoints[0])
        self._done = self._seq = 0
        self._compared = 0

    @property
    def compared(self) -> int:
        """How many places were compared so far, as a measure of the work."""
        return self._compared + self._tally.compared

    def advance(self, seq: int) -> None:
        """Count the changes up to an event, which must be the last one of the log."""
        if seq <= self._seq:
            return
        fresh = {place.number: place for _, place in self._changed[self._done :]}
        self._tally.move(fresh.values(), self._seq, seq)
        self._done, self._seq = len(self._changed), seq
        begin = self._checkpoints[-1]
        if self._done - begin.done >= max(self._between, 2 * len(begin.boxes)):
            kept = _Checkpoint(self._done, seq, self._tally.all(), frozenset(self._tally.retrying))
            self._checkpoints.append(kept)
            self._compared += self._tally.compared
            self._tally = _Tally(kept)

    def standings(self, seq: int, places: Sequence[RunPlace], *, shown: bool = False) -> dict[str, BoxStanding]:
        """Return how each box stood after an event. With ``shown``, without places that the picture does not show."""
        tally = self._tally if seq == self._seq else self._past(seq)
        boxes: dict[str, tuple[int, ...]] = {}
        for (box, is_hidden), counts in tally.all().items():
            if not any(counts) or (is_hidden and shown):
                continue
            known = boxes.get(box)
            boxes[box] = counts if known is None else tuple(map(sum, zip(known, counts, strict=True)))
        found = {box: _standing(counts) for box, counts in boxes.items()}
        self._add_badges(found, [places[number - 1] for number in sorted(tally.retrying)], seq)
        return found

    def _past(self, seq: int) -> _Tally:
        end = bisect_right(self._changed, seq, key=_seq)
        begin = self._checkpoints[bisect_right(self._checkpoints, end, key=_done) - 1]
        tally = _Tally(begin)
        tally.move({place.number: place for _, place in self._changed[begin.done : end]}.values(), begin.seq, seq)
        self._compared += tally.compared
        return tally

    def _add_badges(self, found: dict[str, BoxStanding], retrying: Iterable[RunPlace], seq: int) -> None:
        """Add the attempt of the first place of each box that is in its second attempt or later."""
        for place in retrying:
            box, standing = found.get(place.box), place.standing(seq)
            if box is not None and standing is not None and not box.badges:
                box.badges = [f"attempt {standing.attempts} of {place.operation.attempts_max}"]


def _standing(counts: Sequence[int]) -> BoxStanding:
    return BoxStanding(
        next(mark for mark, count in zip(FIRST, counts, strict=True) if count),
        counts[_WORKING] + counts[_WAITING],
        counts[_DONE],
        counts[_FAILED],
        counts[_SKIPPED],
    )
