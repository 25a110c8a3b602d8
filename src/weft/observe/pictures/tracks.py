"""Assign tracks to the lines that turn between two ranks, so that few lines cross and none overlap. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappush, heapreplace

PAIRS_MAX = 40_000
"""With more pairs of turns between two ranks, the turns are packed without comparing them."""

COVERED = 10
"""The cost of an overlap, in crossings."""


@dataclass(slots=True)
class LineTurn:
    """A line between two ranks. Each end has its x and whether it is above. ``track`` counts from above."""

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
    """Assign a track to every line that turns. Returns the number of tracks."""
    bent = sorted((turn for turn in turns if not turn.is_straight), key=lambda turn: (turn.left, turn.right))
    if len(bent) ** 2 > PAIRS_MAX:
        return _give_free_tracks(bent)
    above = _preferences(bent)
    tracks: list[list[LineTurn]] = []
    for index in _order_turns(above):
        turn = bent[index]
        turn.track = 1 + max((bent[other].track for other in above[index]), default=-1)
        while turn.track < len(tracks) and any(_overlap(turn, other) for other in tracks[turn.track]):
            turn.track += 1
        while len(tracks) <= turn.track:
            tracks.append([])
        tracks[turn.track].append(turn)
    return len(tracks)


def _give_free_tracks(bent: list[LineTurn]) -> int:
    """Use as few tracks as possible, regardless of crossings. From the left, each turn takes the first free track."""
    free: list[tuple[int, int]] = []
    for turn in bent:
        turn.track = heapreplace(free, (turn.right, free[0][1]))[1] if free and free[0][0] < turn.left else len(free)
        if turn.track == len(free):
            heappush(free, (turn.right, turn.track))
    return len(free)


def _preferences(bent: list[LineTurn]) -> list[set[int]]:
    """Return for each turn the turns that should be above it."""
    above: list[set[int]] = [set() for _ in bent]
    for one, first in enumerate(bent):
        for other in range(one + 1, len(bent)):
            second = bent[other]
            if not _overlap(first, second):
                continue
            difference = _cost(first, second) - _cost(second, first)
            if difference < 0:
                above[other].add(one)
            elif difference > 0:
                above[one].add(other)
    return above


def _overlap(one: LineTurn, other: LineTurn) -> bool:
    return one.left <= other.right and other.left <= one.right


def _cost(upper: LineTurn, lower: LineTurn) -> int:
    """Return the cost of placing one turn above another."""
    down, up = upper.ends(above=False), lower.ends(above=True)
    crossings = sum(upper.left < x < upper.right for x in up) + sum(lower.left < x < lower.right for x in down)
    return crossings + COVERED * sum(x in up for x in down)


def _order_turns(above: list[set[int]]) -> list[int]:
    """Order turns so that those that should be above come first. In a cycle, the fewest preferences are dropped."""
    waiting = [set(others) for others in above]
    pending = dict.fromkeys(range(len(above)))
    order: list[int] = []
    while pending:
        chosen = min(pending, key=lambda index: (len(waiting[index]), index))
        above[chosen] -= waiting[chosen]
        del pending[chosen]
        order.append(chosen)
        for index in pending:
            waiting[index].discard(chosen)
    return order
