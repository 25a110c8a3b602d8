"""Tracks for the turns between two ranks: few lines cross and none lie on each other. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappush, heapreplace

PAIRS_MAX = 40_000
"""Beyond so many pairs of turns between two ranks nobody compares them."""

COVERED = 10
"""A line on top of another is as bad as so many crossings."""


@dataclass(slots=True)
class LineTurn:
    """A line that comes from ``begin`` and goes to ``end``; True: that end is above. ``track`` counts from above."""

    begin: tuple[int, bool]
    end: tuple[int, bool]
    track: int = -1

    @property
    def is_straight(self) -> bool:
        return self.begin[0] == self.end[0] and self.begin[1] != self.end[1]

    @property
    def left(self) -> int:
        return min(self.begin[0], self.end[0])

    @property
    def right(self) -> int:
        return max(self.begin[0], self.end[0])

    def ends(self, *, above: bool) -> list[int]:
        return [x for x, is_above in (self.begin, self.end) if is_above == above]


def lay_tracks(turns: list[LineTurn]) -> int:
    """Give every line that turns a track; how many tracks there are."""
    bent = sorted((turn for turn in turns if not turn.is_straight), key=lambda turn: (turn.left, turn.right))
    if len(bent) ** 2 > PAIRS_MAX:
        return _pack(bent)
    above = _preferences(bent)
    tracks: list[list[LineTurn]] = []
    for index in _in_turn(above):
        turn = bent[index]
        turn.track = 1 + max((bent[other].track for other in above[index]), default=-1)
        while turn.track < len(tracks) and any(_meet(turn, other) for other in tracks[turn.track]):
            turn.track += 1
        while len(tracks) <= turn.track:
            tracks.append([])
        tracks[turn.track].append(turn)
    return len(tracks)


def _pack(bent: list[LineTurn]) -> int:
    """Use as few tracks as possible, whatever crosses: from the left, each turn takes the track that is free first."""
    free: list[tuple[int, int]] = []
    for turn in bent:
        turn.track = heapreplace(free, (turn.right, free[0][1]))[1] if free and free[0][0] < turn.left else len(free)
        if turn.track == len(free):
            heappush(free, (turn.right, turn.track))
    return len(free)


def _preferences(bent: list[LineTurn]) -> list[set[int]]:
    """Return for each turn those that should be above it."""
    above: list[set[int]] = [set() for _ in bent]
    for one, first in enumerate(bent):
        for other in range(one + 1, len(bent)):
            second = bent[other]
            if not _meet(first, second):
                continue
            difference = _cost(first, second) - _cost(second, first)
            if difference < 0:
                above[other].add(one)
            elif difference > 0:
                above[one].add(other)
    return above


def _meet(one: LineTurn, other: LineTurn) -> bool:
    return one.left <= other.right and other.left <= one.right


def _cost(upper: LineTurn, lower: LineTurn) -> int:
    """Return what it costs to have one turn above another."""
    down, up = upper.ends(above=False), lower.ends(above=True)
    crossings = sum(upper.left < x < upper.right for x in up) + sum(lower.left < x < lower.right for x in down)
    return crossings + COVERED * sum(x in up for x in down)


def _in_turn(above: list[set[int]]) -> list[int]:
    """Order turns so that what should be above comes first. In a circle, the weakest preference is dropped."""
    waiting = [set(others) for others in above]
    left = dict.fromkeys(range(len(above)))
    order: list[int] = []
    while left:
        chosen = min(left, key=lambda index: (len(waiting[index]), index))
        above[chosen] -= waiting[chosen]
        del left[chosen]
        order.append(chosen)
        for index in left:
            waiting[index].discard(chosen)
    return order
