"""Assign boxes to ranks from top to bottom, and turn every arrow into a chain of vertices from rank to rank. Pure.

The depth of a box is the length of the longest path to it. If arrows that leave the boxes of one depth have labels, the
labels have a separate rank below these boxes, so that they cover nothing. An arrow has a bend in every rank that it
passes. An arrow that leads up has a lane beside the boxes that it passes, and its label is there. In a picture with too
many bends, the longest arrows have none: they are drawn directly from box to box, without a label.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from weft.observe.pictures.model import Picture

Size = tuple[int, int]
"""Width and height."""

BENDS_MAX = 12_000
"""To lay out one bend takes about a tenth of a millisecond, and a picture can have one for every two of its boxes."""

LANE_BENDS = 12
"""The cost of a lane beside that of its bends: to find the boxes that it passes can take a visit to all of them."""


@dataclass(slots=True)
class Vertex:
    """An item of a rank: a box, a label or a bend. ``place`` is its index in the rank, and ``x`` its left side."""

    kind: Literal["box", "label", "bend"]
    rank: int
    width: int
    height: int
    place: int = 0
    x: int = 0


@dataclass(slots=True)
class Chain:
    """An arrow as its vertices from source to target. If it leads ``up``, the vertices in between are its lane."""

    arrow: int
    vertices: list[int]
    up: bool


@dataclass(slots=True)
class Ranked:
    """A picture in ranks. Its first vertices are the boxes in order, and ``rows`` has the vertices of each rank.

    ``direct`` has the boxes at the ends of each arrow that is no chain.
    """

    vertices: list[Vertex]
    rows: list[list[int]]
    chains: list[Chain] = field(default_factory=list)
    direct: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, vertex: Vertex) -> int:
        self.vertices.append(vertex)
        self.rows[vertex.rank].append(len(self.vertices) - 1)
        return len(self.vertices) - 1

    def reorder(self, row: list[int]) -> None:
        """Put the vertices of one rank in this order."""
        for place, number in enumerate(row):
            self.vertices[number].place = place
        self.rows[self.vertices[row[0]].rank] = row


def rank(picture: Picture, boxes: list[Size], labels: list[Size]) -> Ranked:
    """Assign boxes and labels of these sizes to ranks. A label of width 0 is no label. Lanes are added later."""
    numbers = {box.id: number for number, box in enumerate(picture.boxes)}
    ends = [(numbers[arrow.source], numbers[arrow.to]) for arrow in picture.arrows]
    back = {number for number, arrow in enumerate(picture.arrows) if arrow.kind == "back"}
    back |= _closing(len(boxes), ends, back)
    depths = _depths(len(boxes), [end for number, end in enumerate(ends) if number not in back])
    down = [depths[source] < depths[to] for source, to in ends]
    direct = _longest_arrows([depths[to] - depths[source] for source, to in ends])
    labelled = {
        depths[source]
        for number, (source, _) in enumerate(ends)
        if down[number] and labels[number][0] and number not in direct
    }
    levels = _ranks_of_depths(max(depths, default=-1) + 1, labelled)
    ranked = Ranked([], [[] for _ in range(levels[-1] + 1 if levels else 0)])
    for depth, (width, height) in zip(depths, boxes, strict=True):
        ranked.add(Vertex("box", levels[depth], width, height))
    for number, (source, to) in enumerate(ends):
        if number in direct:
            ranked.direct[number] = source, to
            continue
        if not down[number]:
            ranked.chains.append(Chain(number, [source, to], up=True))
            continue
        chain = [source]
        below = levels[depths[source]] + 1
        for level in range(below, levels[depths[to]]):
            is_label = level == below and labels[number][0]
            width, height = labels[number] if is_label else (1, 0)
            chain.append(ranked.add(Vertex("label" if is_label else "bend", level, width, height)))
        ranked.chains.append(Chain(number, [*chain, to], up=False))
    return ranked


def _longest_arrows(heights: list[int]) -> set[int]:
    """Return the longest arrows, without which the others have few enough bends. Heights of arrows up are negative."""
    down = {number: height - 1 for number, height in enumerate(heights) if height > 0}
    up = {number: 1 - height + LANE_BENDS for number, height in enumerate(heights) if height <= 0}
    return _most_bent(down) | _most_bent(up)


def _most_bent(bends: dict[int, int]) -> set[int]:
    """Return the arrows with the most bends. The others have at most ``BENDS_MAX`` together."""
    total = 0
    for most, count in sorted(Counter(bends.values()).items()):
        total += most * count
        if total > BENDS_MAX:
            return {number for number, bent in bends.items() if bent >= most}
    return set()


def _closing(count: int, ends: list[tuple[int, int]], back: set[int]) -> set[int]:
    """Return the arrows that close a cycle and are not marked as back arrows."""
    out: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(ends):
        if number not in back:
            out[source].append(number)
    closing: set[int] = set()
    begun = [False] * count
    open_ = [False] * count
    for root in range(count):
        stack = [] if begun[root] else [(root, iter(out[root]))]
        begun[root] = open_[root] = True
        while stack:
            box, arrows = stack[-1]
            number = next(arrows, -1)
            if number < 0:
                open_[box] = False
                stack.pop()
                continue
            to = ends[number][1]
            if open_[to]:
                closing.add(number)
            elif not begun[to]:
                begun[to] = open_[to] = True
                stack.append((to, iter(out[to])))
    return closing


def _depths(count: int, ends: list[tuple[int, int]]) -> list[int]:
    """Return the length of the longest path to each box."""
    out: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, to in ends:
        out[source].append(to)
        missing[to] += 1
    depths = [0] * count
    ready = [box for box in range(count) if not missing[box]]
    while ready:
        box = ready.pop()
        for to in out[box]:
            depths[to] = max(depths[to], depths[box] + 1)
            missing[to] -= 1
            if not missing[to]:
                ready.append(to)
    return depths


def _ranks_of_depths(count: int, labelled: set[int]) -> list[int]:
    """Return the rank of the boxes of each depth."""
    levels = []
    level = 0
    for depth in range(count):
        levels.append(level)
        level += 2 if depth in labelled else 1
    return levels
