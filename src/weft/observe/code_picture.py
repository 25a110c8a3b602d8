"""The picture of a code run, drawn from what it recorded.

A box stands for a location, however often it was reached. An arrow leads from one location to the next in the same
scope, a round of a loop or an item of a map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weft.observe.box_standing import BoxStanding
from weft.observe.key_counts import KeyCounts
from weft.observe.pictures import Arrow, Box, BoxGroup, Picture
from weft.observe.places import HIDDEN, RunPlace, box_of
from weft.observe.run_moment import RunMoment

START = ""


class CodeDrawer:
    """Draws a code run after any of its events. It remembers which places followed each other."""

    def __init__(self) -> None:
        self._newest = self._other = FollowedPlaces(0)

    def draw(self, machine: object, moment: RunMoment) -> Picture:
        """Return the picture of a code run after an event. The machine is not used."""
        followed = self._followed(moment.drops)
        followed.extend(moment.places, moment.begun, moment.seq)
        return picture_of_code(moment, followed)

    def add_places(self, places: Sequence[RunPlace], drops: int, seq: int) -> None:
        """Take note of the places up to the newest event."""
        self._followed(drops).extend(places, len(places), seq)

    def _followed(self, drops: int) -> FollowedPlaces:
        """Return the order of the places that are not dropped, which is another one after each drop."""
        if drops > self._newest.drops:
            self._other, self._newest = self._newest, FollowedPlaces(drops)
        elif drops not in (self._newest.drops, self._other.drops):
            self._other = FollowedPlaces(drops)
        return self._newest if drops == self._newest.drops else self._other


class FollowedPlaces:
    """Which box followed which in the same scope, as long as the same places are dropped.

    The first place of an item follows its map. The first place of another scope follows the last one around it, which
    is the last one of the round before in a loop.
    """

    def __init__(self, drops: int) -> None:
        self.drops = drops
        self.first: dict[str, RunPlace] = {}
        """The first place of each box."""
        self.arrows: KeyCounts[tuple[str, str]] = KeyCounts()
        self._read = 0
        self._last: dict[str, str] = {"": START}
        self._maps: set[str] = set()

    def extend(self, places: Sequence[RunPlace], begun: int, seq: int) -> None:
        """Add the places that had begun with an event."""
        for number in range(self._read, begun):
            place = places[number]
            if place.operation.kind not in HIDDEN and (not self.drops or place.standing(seq) is not None):
                self._add(place)
        self._read = max(self._read, begun)

    def _add(self, place: RunPlace) -> None:
        location, box, last = place.operation.location, place.box, self._last
        if box not in self.first:
            self.first[box] = place
        scope = location.rpartition("/")[0]
        self.arrows.add(place.number, (self._before(scope), box))
        if place.operation.kind == "map":
            self._maps.add(location)
        while scope:
            last[scope] = box
            scope = scope.rpartition("/")[0]
        last[""] = box

    def _before(self, scope: str) -> str:
        while scope not in self._last:
            scope = scope.rpartition("/")[0]
            if scope in self._maps:
                return box_of(scope)
        return self._last[scope]


def picture_of_code(moment: RunMoment, followed: FollowedPlaces) -> Picture:
    """Return the picture of a code run after an event."""
    title = moment.workflow
    boxes = {START: Box(START, shape="start", mark="done", times=1, tip=f"start of {title}", kind="start")}
    for box, place in followed.first.items():
        if place.number > moment.begun:
            break
        boxes[box] = _box(place, moment.shown[box])
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
        for (source, to), times in followed.arrows.until(moment.begun).items()
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
