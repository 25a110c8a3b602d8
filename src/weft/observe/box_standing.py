"""How the boxes of a picture stand: how many of their places are open, done, failed or skipped."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from weft.observe.pictures import Mark
from weft.observe.places import RunPlace

FIRST: tuple[Mark, ...] = ("working", "waiting", "queued", "failed", "done", "skipped")
"""The marks by priority. The first one that a place of a box has is the mark of the box."""


class BoxStanding(msgspec.Struct, omit_defaults=True):
    """How a box stands: its mark, and how many of its places stand how."""

    mark: Mark = "idle"
    open: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    queued: int = 0
    badges: list[str] = []


def standings_of(places: Iterable[RunPlace], seq: int) -> dict[str, BoxStanding]:
    """Return how each box stood after an event."""
    found: dict[str, BoxStanding] = {}
    marks: dict[str, set[Mark]] = {}
    for place in places:
        standing = place.standing(seq)
        if standing is None:
            continue
        box = found.setdefault(place.box, BoxStanding())
        mark = place.mark(standing)
        marks.setdefault(place.box, set()).add(mark)
        if standing.status == "open":
            box.open += 1
            if standing.attempts > 1 and not box.badges:
                box.badges = [f"attempt {standing.attempts} of {place.operation.attempts_max}"]
        elif mark == "done":
            box.done += 1
        elif mark == "failed":
            box.failed += 1
        else:
            box.skipped += 1
    for name, box in found.items():
        box.mark = next(mark for mark in FIRST if mark in marks[name])
    return found
