"""Compare two runs box by box, for two pictures over each other, and find the first events at which they part. Pure."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, Literal

import msgspec

from weft.observe.pictures import Mark
from weft.observe.place_log import PlaceLog
from weft.observe.places import RunPlace, box_of
from weft.observe.run_diff import DIVERGING, Difference, TraceDiff
from weft.observe.viewed_run import Standing

Presence = Literal["a", "b", "both"]
_VISIT = re.compile(r" \(\d+\)$")
_BRANCH = re.compile(r"[\[~]")


class BoxSide(msgspec.Struct, frozen=True, kw_only=True):
    """How a box stands in one of the runs, and when its places worked. Times are in milliseconds since 1970."""

    mark: Mark
    times: int
    """How many places it has."""
    started_at: int | None
    ended_at: int | None
    """When its last place ended; null while one is open."""
    took_ms: int | None
    """From the start of its first place to the end of its last one."""


class BoxDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A box of the two pictures: which of the runs has it, how it stands there, and the first difference."""

    box: str
    presence: Presence
    is_changed: bool
    """Whether both runs have the box, with other values or another outcome."""
    a: BoxSide | None
    b: BoxSide | None
    first: Difference | None


class PartingPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The first event of each run that the other one does not have in the same way; null if there is none."""

    a: int | None
    b: int | None


def box_differences(
    a: tuple[PlaceLog, Standing], b: tuple[PlaceLog, Standing], found: TraceDiff
) -> list[BoxDifference]:
    """Return all boxes of both runs, those of the first run first, in the order in which they began."""
    sides = [_sides(log, standing) for log, standing in (a, b)]
    boxes = dict.fromkeys([*sides[0], *sides[1]])
    changes: dict[str, Difference] = {}
    for one in found.changed:
        if one.aspect in DIVERGING:
            changes.setdefault(_box_of_trace(one.place, boxes), one)
    return [
        BoxDifference(
            box=box,
            presence="both" if box in sides[0] and box in sides[1] else "a" if box in sides[0] else "b",
            is_changed=box in changes and box in sides[0] and box in sides[1],
            a=sides[0].get(box),
            b=sides[1].get(box),
            first=changes.get(box),
        )
        for box in boxes
    ]


def _box_of_trace(place: str, known: Container[str]) -> str:
    """Return the box of a place as traces name it: with branches and rounds in brackets, and numbered visits."""
    plain = _VISIT.sub("", place)
    return next((box for box in (_BRANCH.split(plain)[0], box_of(plain)) if box in known), plain)


def _sides(log: PlaceLog, standing: Standing) -> dict[str, BoxSide]:
    places: dict[str, list[RunPlace]] = {}
    for place in log.until(standing.seq):
        if place.standing(standing.seq) is not None:
            places.setdefault(place.box, []).append(place)
    order = dict.fromkeys([*places, *standing.boxes])
    return {box: _side(standing.boxes[box].mark, places.get(box, []), standing.seq) for box in order if box}


def _side(mark: Mark, places: list[RunPlace], seq: int) -> BoxSide:
    if not places:
        return BoxSide(mark=mark, times=0, started_at=None, ended_at=None, took_ms=None)
    last = [standing for place in places if (standing := place.standing(seq)) is not None]
    since = places[0].changes[0].at
    until = None if any(one.status == "open" for one in last) else max(one.at for one in last)
    took = until - since if until is not None else None
    return BoxSide(mark=mark, times=len(places), started_at=since, ended_at=until, took_ms=took)


def parting_point(a: PlaceLog, b: PlaceLog, ends: tuple[int, int]) -> PartingPoint:
    """Return the first events at which two logs part, up to the given events. Ids and times are not compared."""
    shared = 0
    while a.first + shared <= ends[0] and b.first + shared <= ends[1]:
        if _what_it_says(a, a.first + shared) != _what_it_says(b, b.first + shared):
            break
        shared += 1
    first_a, first_b = a.first + shared, b.first + shared
    return PartingPoint(a=first_a if first_a <= ends[0] else None, b=first_b if first_b <= ends[1] else None)


def _what_it_says(log: PlaceLog, seq: int) -> list[Any]:
    """Return what an event says, without ids and times."""
    return [(subject.kind, *_outcome(subject.place, seq)) for subject in log.subjects_of_record(seq)]


def _outcome(place: RunPlace | None, seq: int) -> tuple[Any, ...]:
    standing = place.standing(seq) if place is not None else None
    if place is None or standing is None:
        return ()
    failure = standing.failure
    problem = (failure.type, failure.message) if failure is not None else None
    return place.operation.location, standing.status, standing.attempts, standing.output, problem
