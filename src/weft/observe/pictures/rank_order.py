"""Order the vertices of each rank so that few arrows cross, and add lanes for the arrows that lead up. Pure.

Each rank in turn is sorted by the average position of its neighbours (barycentres). Then adjacent vertices are swapped
while that removes crossings. The same picture always gets the same order.
"""

from __future__ import annotations

from bisect import bisect, insort
from itertools import pairwise

from weft.observe.pictures.ranks import Chain, Ranked, Size, Vertex

SWEEPS = 16
SWEEPS_MIN = 4
VISITS_MAX = 90_000
"""A sweep visits every vertex. Large pictures get fewer sweeps, so that all of them together visit about this many."""

SWAPS_MAX = 4
SWAPPED_VERTICES_MAX = 3_000
"""Larger pictures are not improved by swaps, which compare every pair of adjacent vertices."""


class Ordering:
    """The neighbours of every vertex in the ranks above and below."""

    def __init__(self, ranked: Ranked) -> None:
        self.ranked = ranked
        self.above: list[list[int]] = [[] for _ in ranked.vertices]
        self.below: list[list[int]] = [[] for _ in ranked.vertices]
        for chain in ranked.chains:
            if not chain.up:
                for upper, lower in pairwise(chain.vertices):
                    self.below[upper].append(lower)
                    self.above[lower].append(upper)

    def settle(self) -> None:
        """Order all ranks."""
        self._begin()
        best, fewest = self._rows(), self._crossings()
        for sweep in range(max(SWEEPS_MIN, min(SWEEPS, VISITS_MAX // max(1, len(self.above))))):
            if not fewest:
                break
            self._sort(down=sweep % 2 == 0)
            self._swap()
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = self._rows(), crossings
        for row in best:
            self.ranked.reorder(row)

    def _rows(self) -> list[list[int]]:
        return [list(row) for row in self.ranked.rows if row]

    def _begin(self) -> None:
        """Order vertices in reading order: depth first from the first box, with arrows in their order."""
        rows: list[list[int]] = [[] for _ in self.ranked.rows]
        seen = [False] * len(self.ranked.vertices)
        tops = [number for number in range(len(seen)) if not self.above[number]]
        stack = list(reversed(tops))
        while stack:
            number = stack.pop()
            if not seen[number]:
                seen[number] = True
                rows[self.ranked.vertices[number].rank].append(number)
                stack += reversed(self.below[number])
        for row in filter(None, rows):
            self.ranked.reorder(row)

    def _sort(self, *, down: bool) -> None:
        vertices = self.ranked.vertices
        near = self.above if down else self.below
        for row in self.ranked.rows if down else reversed(self.ranked.rows):
            keys = {
                number: sum(vertices[other].place for other in near[number]) / len(near[number])
                for number in row
                if near[number]
            }
            # A vertex without neighbours in that rank keeps its place; the others are sorted around it.
            moving = iter(sorted(keys, key=lambda number: (keys[number], vertices[number].place)))
            if keys:
                self.ranked.reorder([next(moving) if number in keys else number for number in row])

    def _swap(self) -> None:
        if len(self.ranked.vertices) > SWAPPED_VERTICES_MAX:
            return
        for _ in range(SWAPS_MAX):
            changed = [self._swap_in(list(row)) for row in self.ranked.rows]
            if not any(changed):
                return

    def _swap_in(self, row: list[int]) -> bool:
        changed = False
        for place in range(len(row) - 1):
            left, right = row[place], row[place + 1]
            if self._between(right, left) < self._between(left, right):
                row[place], row[place + 1] = right, left
                changed = True
        if changed:
            self.ranked.reorder(row)
        return changed

    def _between(self, left: int, right: int) -> int:
        """Count the crossings between the arrows of two adjacent vertices in this order."""
        vertices = self.ranked.vertices
        count = 0
        for near in (self.above, self.below):
            for one in near[left]:
                count += sum(vertices[other].place < vertices[one].place for other in near[right])
        return count

    def _crossings(self) -> int:
        vertices = self.ranked.vertices
        count = 0
        for row in self.ranked.rows:
            passed: list[int] = []
            for number in row:
                places = sorted(vertices[other].place for other in self.below[number])
                count += sum(len(passed) - bisect(passed, place) for place in places)
                for place in places:
                    insort(passed, place)
        return count


def add_lanes(ranked: Ranked, labels: list[Size]) -> None:
    """Add a lane for each arrow that leads up, beside the boxes that it passes. Inner loops come first."""
    ordering = Ordering(ranked)
    up = [chain for chain in ranked.chains if chain.up]
    for chain in sorted(up, key=lambda chain: (_height(ranked, chain), chain.arrow)):
        around = _vertices_in_loop(ranked, ordering, chain)
        _add_lane(ranked, chain, around, labels[chain.arrow])


def _height(ranked: Ranked, chain: Chain) -> int:
    source, to = chain.vertices
    return ranked.vertices[source].rank - ranked.vertices[to].rank


def _vertices_in_loop(ranked: Ranked, ordering: Ordering, chain: Chain) -> set[int]:
    """Return the vertices between the target of a back arrow and its source, including existing lanes."""
    source, header = chain.vertices
    body = _reached(header, ordering.below) & _reached(source, ordering.above) | {source, header}
    for other in ranked.chains:
        if other.up and other.vertices[0] in body and other.vertices[-1] in body:
            body.update(other.vertices)
    return body


def _reached(start: int, near: list[list[int]]) -> set[int]:
    reached = {start}
    stack = [start]
    while stack:
        for other in near[stack.pop()]:
            if other not in reached:
                reached.add(other)
                stack.append(other)
    return reached


def _add_lane(ranked: Ranked, chain: Chain, around: set[int], label: Size) -> None:
    source, header = chain.vertices
    top, bottom = ranked.vertices[header].rank, ranked.vertices[source].rank
    on_right = _is_freer_on_right(ranked, around, range(top, bottom + 1))
    lane = []
    for level in range(bottom, top - 1, -1):
        row = ranked.rows[level]
        inside = [place for place, number in enumerate(row) if number in around]
        place = (max(inside) + 1 if on_right else min(inside)) if inside else len(row) if on_right else 0
        has_label = level == bottom and label[0]
        width, height = label if has_label else (1, 0)
        number = ranked.add(Vertex("label" if has_label else "bend", level, width, height))
        ranked.reorder([*row[:place], number, *(other for other in row[place:] if other != number)])
        lane.append(number)
    chain.vertices = [source, *lane, header]


def _is_freer_on_right(ranked: Ranked, around: set[int], levels: range) -> bool:
    """Return whether a loop has at most as many vertices on its right as on its left."""
    left = right = 0
    for level in levels:
        inside = [ranked.vertices[number].place for number in ranked.rows[level] if number in around]
        if inside:
            left += min(inside)
            right += len(ranked.rows[level]) - 1 - max(inside)
    return right <= left
