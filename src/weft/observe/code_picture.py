"""The picture of a code run, drawn from what it recorded.

A box stands for a location, however often it was reached. An arrow leads from one location to the next in the same
scope, a round of a loop or an item of a map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from weft.observe.box_standing import BoxStanding, standings_of
from weft.observe.pictures import Arrow, Box, BoxGroup, Picture
from weft.observe.places import RunPlace, box_of

START = ""
_HIDDEN = frozenset({"now", "random", "uuid", "set", "version"})
"""Kinds of places without a box: values that the code asks for on its way."""


def picture_of_code(title: str, places: Iterable[RunPlace], seq: int) -> Picture:
    """Return the picture of a code run after an event."""
    shown = [place for place in places if place.operation.kind not in _HIDDEN and place.standing(seq) is not None]
    boxes = {START: Box(START, shape="start", mark="done", times=1, tip=f"start of {title}", kind="start")}
    standings = standings_of(shown, seq)
    for place in shown:
        if place.box not in boxes:
            boxes[place.box] = _box(place, standings[place.box])
    followed = _followed(shown)
    order = {box: number for number, box in enumerate(boxes)}
    arrows = [
        Arrow(
            source,
            to,
            kind="main" if order[source] < order[to] else "back",
            taken=True,
            times=times,
            id=f"{source}>{to}",
        )
        for (source, to), times in followed.items()
    ]
    return Picture(title, tuple(boxes.values()), tuple(arrows), groups=tuple(_groups(boxes)))


def _box(place: RunPlace, standing: BoxStanding) -> Box:
    operation = place.operation
    name = place.box.rpartition("/")[2]
    does = operation.kind if operation.what in ("", name) else f"{operation.kind} {operation.what}"
    return Box(
        place.box,
        name,
        does,
        mark=standing.mark,
        times=standing.done,
        badges=tuple(standing.badges),
        tip=f"{place.box}\n{does}",
        kind=operation.kind,
        group=place.box.rpartition("/")[0],
    )


def _groups(boxes: Iterable[str]) -> Iterator[BoxGroup]:
    """Yield a group for each scope with boxes, outer ones first."""
    known = {""}
    for box in boxes:
        scope = box.rpartition("/")[0]
        parts = scope.split("/")
        for size in range(1, len(parts) + 1):
            group = "/".join(parts[:size])
            if group not in known:
                known.add(group)
                yield BoxGroup(group, parts[size - 1], "scope", "/".join(parts[: size - 1]))


def _followed(places: Iterable[RunPlace]) -> Counter[tuple[str, str]]:
    """Count how often one box followed another in the same scope.

    The first place of an item follows its map. The first place of another scope follows the last one around it, which
    is the last one of the round before in a loop.
    """
    last: dict[str, str] = {"": START}
    maps: set[str] = set()
    found: Counter[tuple[str, str]] = Counter()
    for place in places:
        location = place.operation.location
        scope = location.rpartition("/")[0]
        found[_before(scope, last, maps), place.box] += 1
        if place.operation.kind == "map":
            maps.add(location)
        while scope:
            last[scope] = place.box
            scope = scope.rpartition("/")[0]
        last[""] = place.box
    return found


def _before(scope: str, last: dict[str, str], maps: set[str]) -> str:
    while scope not in last:
        scope = scope.rpartition("/")[0]
        if scope in maps:
            return box_of(scope)
    return last[scope]
