"""Lay out a picture: find the area of each box and label, and the route of every arrow, in units of the renderer.

This is a layered drawing: ranks by the longest path, order by barycentres, positions by least squares, and a separate
track between two ranks for every line that turns. Lines are vertical or horizontal, and cross no box or label; only in
a picture that is too large for it are the longest arrows straight from box to box.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from weft.observe.pictures.metrics import LayoutMetrics
from weft.observe.pictures.model import Picture
from weft.observe.pictures.positions import Positions
from weft.observe.pictures.rank_order import Ordering, add_lanes
from weft.observe.pictures.ranks import Chain, Ranked, Size, Vertex, rank
from weft.observe.pictures.tracks import LineTurn, lay_tracks

Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle. Its right and lower sides are not part of it."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ArrowRoute:
    """The corners of an arrow from the lower side of its source to the upper side of its target, and its label."""

    points: list[Point]
    label: Area | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a picture: boxes and routes in the order of its boxes and arrows."""

    width: int
    height: int
    boxes: list[Area]
    routes: list[ArrowRoute]


def lay_out(picture: Picture, metrics: LayoutMetrics) -> Layout:
    """Lay out all boxes, labels and arrows."""
    return _placed(_ordered_ranks(picture, metrics), metrics, len(picture.boxes))


def lay_out_within(picture: Picture, metrics: LayoutMetrics, width_max: int) -> Layout | None:
    """Lay out a picture as ``lay_out`` does; None if it is wider than ``width_max`` or has direct lines."""
    ranked = _ordered_ranks(picture, metrics)
    if ranked.direct or any(_width_min(row, ranked, metrics) > width_max for row in ranked.rows):
        return None
    layout = _placed(ranked, metrics, len(picture.boxes))
    return layout if layout.width <= width_max else None


def _ordered_ranks(picture: Picture, metrics: LayoutMetrics) -> Ranked:
    labels = [metrics.label(arrow) for arrow in picture.arrows]
    ranked = rank(picture, _sizes(picture, metrics), labels)
    Ordering(ranked).settle()
    add_lanes(ranked, labels)
    return ranked


def _placed(ranked: Ranked, metrics: LayoutMetrics, boxes: int) -> Layout:
    positions = Positions(ranked, metrics)
    positions.settle()
    return _Drawing(ranked, metrics, positions, boxes).layout()


def _width_min(row: list[int], ranked: Ranked, metrics: LayoutMetrics) -> int:
    """Return the minimum width of a rank."""
    vertices = [ranked.vertices[number] for number in row]
    return sum(metrics.distance(*pair) for pair in pairwise(vertices)) + (vertices[-1].width if vertices else 0)


def _sizes(picture: Picture, metrics: LayoutMetrics) -> list[Size]:
    """Return the sizes of boxes. Each is wide enough for its arrows."""
    leaving = Counter(arrow.source for arrow in picture.arrows)
    entering = Counter(arrow.to for arrow in picture.arrows)
    sizes = []
    for box in picture.boxes:
        width, height = metrics.box(box)
        most = max(leaving[box.id], entering[box.id])
        least = 2 * metrics.corner + (most - 1) * metrics.port * 3 // 4
        sizes.append((max(width, least | 1) if most > 1 else width, height))
    return sizes


class _Drawing:
    """Assigns lines to tracks between ranks, and then computes the heights."""

    def __init__(self, ranked: Ranked, metrics: LayoutMetrics, positions: Positions, boxes: int) -> None:
        self.ranked = ranked
        self.metrics = metrics
        self.boxes = boxes
        self._positions = positions
        self._ports = _align_arrows(ranked, positions, metrics)
        self.channels: list[list[LineTurn]] = [[] for _ in range(len(ranked.rows) + 1)]
        """The turns above each rank. The last entry has the turns below all ranks."""
        self.ways = [self._turns(chain) for chain in ranked.chains]

    def _turns(self, chain: Chain) -> list[tuple[int, LineTurn]]:
        """Return the turns of an arrow, each with the rank below it."""
        turns = []
        last = len(chain.vertices) - 2
        for index, (one, other) in enumerate(pairwise(chain.vertices)):
            here, there = self.ranked.vertices[one].rank, self.ranked.vertices[other].rank
            begin, end = self._x(one, chain.arrow, leaves=True), self._x(other, chain.arrow, leaves=False)
            if not chain.up:
                turn, channel = LineTurn((begin, True), (end, False)), there
            elif index == 0:
                turn, channel = LineTurn((begin, True), (end, True)), here + 1
            elif index == last:
                turn, channel = LineTurn((begin, False), (end, False)), here
            else:
                turn, channel = LineTurn((begin, False), (end, True)), here
            self.channels[channel].append(turn)
            turns.append((channel, turn))
        return turns

    def _x(self, number: int, arrow: int, *, leaves: bool) -> int:
        vertex = self.ranked.vertices[number]
        if vertex.kind == "box":
            return self._ports[number, arrow, leaves]
        return vertex.x + round(self._positions.line(number, arrow, leaves=leaves))

    def layout(self) -> Layout:
        tops, firsts = self._heights()
        areas = [self._area(vertex, tops) for vertex in self.ranked.vertices]
        routes = [ArrowRoute([])] * (len(self.ranked.chains) + len(self.ranked.direct))
        for chain, way in zip(self.ranked.chains, self.ways, strict=True):
            source, target = areas[chain.vertices[0]], areas[chain.vertices[-1]]
            points = [(way[0][1].begin[0], source.y + source.height)]
            for channel, turn in way:
                if not turn.is_straight:
                    y = firsts[channel] + turn.track * self.metrics.track
                    points += [(turn.begin[0], y), (turn.end[0], y)]
            points.append((way[-1][1].end[0], target.y))
            label = next((areas[n] for n in chain.vertices if self.ranked.vertices[n].kind == "label"), None)
            routes[chain.arrow] = ArrowRoute(points, label)
        for arrow, (one, other) in self.ranked.direct.items():
            source, target = areas[one], areas[other]
            begin = (source.x + source.width // 2, source.y + source.height)
            routes[arrow] = ArrowRoute([begin, (target.x + target.width // 2, target.y)])
        edges = [area.x + area.width for area in areas] + [x + 1 for route in routes for x, _ in route.points]
        return Layout(max(edges, default=0), tops[-1][0], areas[: self.boxes], routes)

    def _heights(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Return the top and height of each rank and of the end, and the position of the first track above each."""
        metrics, tops, firsts, y = self.metrics, list[tuple[int, int]](), list[int](), 0
        for level, turns in enumerate(self.channels):
            row = self.ranked.rows[level] if level < len(self.ranked.rows) else []
            tracks = lay_tracks(turns)
            has_boxes = any(self.ranked.vertices[number].kind == "box" for number in row)
            firsts.append(y + metrics.lead)
            if tracks:
                y += metrics.lead + (tracks - 1) * metrics.track + metrics.head
            elif turns:
                y += metrics.straight
            if turns and has_boxes:
                y += metrics.arrow
            height = max((self.ranked.vertices[number].height for number in row), default=0)
            tops.append((y, height))
            y += height
        return tops, firsts

    def _area(self, vertex: Vertex, tops: list[tuple[int, int]]) -> Area:
        top, height = tops[vertex.rank]
        return Area(vertex.x, top + (height - vertex.height) // 2, vertex.width, vertex.height)


def _align_arrows(ranked: Ranked, positions: Positions, metrics: LayoutMetrics) -> dict[tuple[int, int, bool], int]:
    """Return the x at which arrows meet boxes, by box, arrow and whether they leave. Lines are straight if possible."""
    ports: dict[tuple[int, int, bool], int] = {}
    for leaves, table in ((True, positions.leaving), (False, positions.entering)):
        for (box, arrow), offset in table.items():
            ports[box, arrow, leaves] = ranked.vertices[box].x + round(offset)
    lines: dict[tuple[int, bool], list[tuple[int, Chain]]] = {}
    for chain in ranked.chains:
        lines.setdefault((chain.vertices[0], True), []).append((chain.vertices[1], chain))
        lines.setdefault((chain.vertices[-1], False), []).append((chain.vertices[-2], chain))
    for (box, leaves), found in lines.items():
        vertex = ranked.vertices[box]
        found.sort(key=lambda line: ports[box, line[1].arrow, leaves])
        low = vertex.x + metrics.corner
        for index, (other, chain) in enumerate(found):
            high = vertex.x + vertex.width - 1 - metrics.corner
            if index + 1 < len(found):
                high = ports[box, found[index + 1][1].arrow, leaves] - (metrics.port + 1) // 2
            key = (box, chain.arrow, leaves)
            opposite = _other_end(ranked, positions, ports, (other, chain, leaves))
            if opposite is not None and low <= opposite <= high:
                ports[key] = opposite
            low = ports[key] + (metrics.port + 1) // 2
    return ports


def _other_end(
    ranked: Ranked,
    positions: Positions,
    ports: dict[tuple[int, int, bool], int],
    line: tuple[int, Chain, bool],
) -> int | None:
    """Return the x of the other end of a line; None for an arrow that leads up."""
    other, chain, leaves = line
    if chain.up:
        return None
    if ranked.vertices[other].kind == "box":
        return ports[other, chain.arrow, not leaves]
    return ranked.vertices[other].x + round(positions.line(other, chain.arrow, leaves=not leaves))
