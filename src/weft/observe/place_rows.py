"""Lists of places: found, ordered and cut into pages, without their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from weft.observe.pictures import Mark
from weft.observe.place_log import PlaceLog
from weft.observe.places import PlaceChange, RunPlace

Order = Literal["first", "last"]


class PlaceRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place as lists and the timeline show it. Times are in milliseconds since 1970."""

    number: int
    """The number of the place in its run, from 1, in the order in which places began."""
    place: str
    box: str
    kind: str
    what: str = ""
    mark: Mark
    began: int
    """The number of the event with which it began, and below of the one with which it ended."""
    ended: int | None = None
    started_at: int
    ended_at: int | None = None
    due_at: int | None = None
    attempts: int = 1
    attempts_max: int = 0
    rounds: int = 0
    branch: int | None = None
    """The item of a map or of a step's work, or the round of a loop, in which it is."""
    child: str = ""
    why: str = ""
    failure: str = ""
    """The first line of the failure, if there is one."""
    output_bytes: int = 0


class PlaceSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which places are wanted, and in which order. ``after`` is the number of the last place of the page before."""

    seq: int
    box: str | None = None
    marks: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    text: str = ""
    order: Order = "first"
    after: int | None = None
    limit: int = 200


def find_places(log: PlaceLog, search: PlaceSearch) -> tuple[list[PlaceRow], int | None]:
    """Return a page of places, and the number to continue after; None if it is the last page."""
    found: list[PlaceRow] = []
    for place in matching_places(log, search):
        if len(found) == search.limit:
            return found, found[-1].number
        standing = place.standing(search.seq)
        assert standing is not None
        found.append(row_of(place, standing))
    return found, None


def matching_places(log: PlaceLog, search: PlaceSearch) -> Iterator[RunPlace]:
    """Yield the places that are wanted, without a limit."""
    for place in _ordered_places(log, search):
        standing = place.standing(search.seq)
        if standing is not None and _matches(place, standing, search):
            yield place


def _ordered_places(log: PlaceLog, search: PlaceSearch) -> Iterator[RunPlace]:
    places = log.until(search.seq)
    if search.order == "last":
        until = len(places) if search.after is None else min(len(places), search.after - 1)
        yield from reversed(places[: max(0, until)])
    else:
        yield from places[search.after or 0 :]


def _matches(place: RunPlace, standing: PlaceChange, search: PlaceSearch) -> bool:
    if search.box is not None and place.box != search.box:
        return False
    if search.marks and standing.mark not in search.marks:
        return False
    if search.kinds and place.operation.kind not in search.kinds:
        return False
    text = search.text.casefold()
    return not text or any(
        text in one.casefold()
        for one in (place.operation.location, place.operation.what, standing.why, _place_failure(standing))
    )


def row_of(place: RunPlace, standing: PlaceChange) -> PlaceRow:
    """Return the row of a place that stands like this."""
    operation = place.operation
    is_open = standing.status == "open"
    return PlaceRow(
        number=place.number,
        place=operation.location,
        box=place.box,
        kind=operation.kind,
        what=operation.what,
        mark=standing.mark,
        began=place.began,
        ended=None if is_open else standing.seq,
        started_at=place.changes[0].at,
        ended_at=None if is_open else standing.at,
        due_at=standing.due or None if is_open else None,
        attempts=standing.attempts,
        attempts_max=operation.attempts_max,
        rounds=standing.rounds,
        branch=_innermost_branch(operation.location),
        child=operation.child,
        why=standing.why,
        failure=_place_failure(standing),
        output_bytes=len(standing.output) if standing.status == "done" else 0,
    )


def _place_failure(standing: PlaceChange) -> str:
    failure = standing.failure
    return f"{failure.type}: {failure.message}".partition("\n")[0][:500] if failure is not None else ""


def _innermost_branch(location: str) -> int | None:
    """Return the innermost item or round in a location."""
    for part in reversed(location.split("/")[:-1]):
        if part.startswith("~") and part[1:].isdigit():
            return int(part[1:])
    last = location.rpartition("/")[2]
    return int(last) if "/" in location and last.isdigit() else None
