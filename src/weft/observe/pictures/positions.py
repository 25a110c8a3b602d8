"""Find the horizontal positions of vertices: lines are as straight as the order allows, and nothing overlaps. Pure.

Every vertex is pulled to where its lines would be straight. Each rank is solved by least squares under the minimum
distances of its vertices (pool adjacent violators), and the ranks are solved in turn, down and up. Then positions are
rounded to whole units, and each vertex moves to where fewest of its lines bend.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from weft.observe.pictures.metrics import LayoutMetrics
from weft.observe.pictures.ranks import Chain, Ranked

SWEEPS = 24
SWEEPS_MIN = 8
VISITS_MAX = 90_000
"""A sweep visits every vertex. Large pictures get fewer sweeps, so that all of them together visit about this many."""

STRAIGHTENINGS = 6
FAR = 10**9
WISHES_MAX = 12
"""If there are more preferred positions, only those in the middle are tried."""

PUSH_LANES = 4
"""A vertex in the way of a straight line is moved by at most this many lanes."""

WEIGHT_BENDS = 8.0
WEIGHT_BEND = 3.0
WEIGHT_REST = 0.02
"""The weight of the current position, which keeps a vertex without lines where it is."""


@dataclass(slots=True)
class Hop:
    """A line between two vertices, with the offset from the left side of each at which it meets the vertex."""

    one: int
    other: int
    at_one: float
    at_other: float
    weight: float


class Positions:
    """The ports of boxes and the positions of all vertices."""

    def __init__(self, ranked: Ranked, metrics: LayoutMetrics) -> None:
        self.ranked = ranked
        self.metrics = metrics
        self.leaving: dict[tuple[int, int], float] = {}
        """The offset from the left side of a box at which an arrow leaves it, by box and arrow."""
        self.entering: dict[tuple[int, int], float] = {}
        self._spread()
        self._above: list[list[Hop]] = [[] for _ in ranked.vertices]
        self._below: list[list[Hop]] = [[] for _ in ranked.vertices]
        self._beside: list[list[Hop]] = [[] for _ in ranked.vertices]
        for chain in ranked.chains:
            self._add_hops(chain)

    def settle(self) -> None:
        """Set ``x`` of every vertex. The smallest is 0."""
        spots = self._begin()
        self._sweep(spots)
        self._round_positions(spots)
        for number in range(STRAIGHTENINGS):
            before = [vertex.x for vertex in self.ranked.vertices]
            for chain in self.ranked.chains:
                self._straighten_chain(chain)
            for row in self.ranked.rows if number % 2 == 0 else reversed(self.ranked.rows):
                self._straighten(row)
            if before == [vertex.x for vertex in self.ranked.vertices]:
                break
        first = min((vertex.x for vertex in self.ranked.vertices), default=0)
        for vertex in self.ranked.vertices:
            vertex.x -= first

    # --- lines ----------------------------------------------------------------------------------------------------

    def _spread(self) -> None:
        """Distribute the ports around the middle of their box, in the order of their lines."""
        leaving: dict[int, list[tuple[int, Chain]]] = {}
        entering: dict[int, list[tuple[int, Chain]]] = {}
        for chain in self.ranked.chains:
            leaving.setdefault(chain.vertices[0], []).append((chain.vertices[1], chain))
            entering.setdefault(chain.vertices[-1], []).append((chain.vertices[-2], chain))
        for ports, found in ((leaving, self.leaving), (entering, self.entering)):
            for box, lines in ports.items():
                width = self.ranked.vertices[box].width
                lines.sort(key=lambda line: self._side(box, *line))
                step = min(self.metrics.port, max(0, width - 1 - 2 * self.metrics.corner) / max(1, len(lines) - 1))
                for index, (_, chain) in enumerate(lines):
                    found[box, chain.arrow] = (width - 1) / 2 + (index - (len(lines) - 1) / 2) * step

    def _side(self, box: int, other: int, chain: Chain) -> tuple[int, int, int]:
        """Return the sort key of a line at a box. The nearest lane is outermost, so that lanes do not cross."""
        place = self.ranked.vertices[other].place
        if not chain.up:
            return 1, place, chain.arrow
        return (2 if place > self.ranked.vertices[box].place else 0), -place, chain.arrow

    def line(self, number: int, arrow: int, *, leaves: bool) -> float:
        """Return the offset from the left side of a vertex at which an arrow passes it."""
        vertex = self.ranked.vertices[number]
        if vertex.kind == "box":
            return (self.leaving if leaves else self.entering)[number, arrow]
        return self.metrics.label_line(vertex.width) if vertex.kind == "label" else 0

    def _add_hops(self, chain: Chain) -> None:
        last = len(chain.vertices) - 2
        for index, (one, other) in enumerate(pairwise(chain.vertices)):
            at_one = self.line(one, chain.arrow, leaves=True)
            at_other = self.line(other, chain.arrow, leaves=False)
            if chain.up and index in (0, last):
                self._add_turn(one, other)
                continue
            bends = sum(self.ranked.vertices[number].kind != "box" for number in (one, other))
            weight = (1.0, WEIGHT_BEND, WEIGHT_BENDS)[bends]
            upper, lower = (self._above, self._below) if chain.up else (self._below, self._above)
            upper[one].append(Hop(one, other, at_one, at_other, weight))
            lower[other].append(Hop(other, one, at_other, at_one, weight))

    def _add_turn(self, one: int, other: int) -> None:
        """Pull a lane towards the box that it leaves or enters."""
        vertices = self.ranked.vertices
        box, lane = (one, other) if vertices[one].kind == "box" else (other, one)
        gap = self.metrics.lane
        is_right = vertices[lane].place > vertices[box].place
        at_box = vertices[box].width + gap if is_right else -gap - vertices[lane].width
        self._beside[lane].append(Hop(lane, box, 0, at_box, 0.5))

    # --- least squares --------------------------------------------------------------------------------------------

    def _begin(self) -> list[float]:
        spots = [0.0] * len(self.ranked.vertices)
        for row in self.ranked.rows:
            x = 0.0
            for index, number in enumerate(row):
                if index:
                    x += self.metrics.distance(self.ranked.vertices[row[index - 1]], self.ranked.vertices[number])
                spots[number] = x
            for number in row:
                spots[number] -= x / 2
        return spots

    def _sweep(self, spots: list[float]) -> None:
        """Solve the ranks in turn, down and up. The last sweeps look in both directions, so neither is preferred."""
        sweeps = max(SWEEPS_MIN, min(SWEEPS, VISITS_MAX // max(1, len(spots))))
        rows = [(row, self._shifts(row)) for row in self.ranked.rows]
        lines = list(zip(self._above, self._beside, self._below, strict=True))
        down, up = [above + beside for above, beside, _ in lines], [below + beside for _, beside, below in lines]
        both = [above + beside + below for above, beside, below in lines]
        for sweep in range(sweeps):
            hops = both if sweep >= sweeps // 2 else up if sweep % 2 else down
            for row, shifts in reversed(rows) if sweep % 2 else rows:
                _settle_row(row, shifts, hops, spots)

    def _shifts(self, row: list[int]) -> list[int]:
        """Return the least distance of each vertex of a rank from the first."""
        vertices = [self.ranked.vertices[number] for number in row]
        return list(accumulate((self.metrics.distance(*pair) for pair in pairwise(vertices)), initial=0))

    # --- whole units ----------------------------------------------------------------------------------------------

    def _round_positions(self, spots: list[float]) -> None:
        vertices = self.ranked.vertices
        for row in self.ranked.rows:
            for index, number in enumerate(row):
                vertices[number].x = round(spots[number])
                if index:
                    left = vertices[row[index - 1]]
                    vertices[number].x = max(vertices[number].x, left.x + self.metrics.distance(left, vertices[number]))

    def _straighten(self, row: list[int]) -> None:
        """Move each vertex to where its lines bend least, as far as its neighbours allow."""
        vertices = self.ranked.vertices
        for index, number in enumerate(row):
            vertex = vertices[number]
            hops = self._above[number] + self._below[number]
            if not hops:
                continue
            wishes = [(vertices[hop.other].x + round(hop.at_other) - round(hop.at_one), hop.weight) for hop in hops]
            low, high = self._room(row, index)
            vertex.x = _nearest(vertex.x, wishes, low, high)

    def _straighten_chain(self, chain: Chain) -> None:
        """Align the bends of an arrow vertically: all of them if possible, or else as many as possible at a time."""
        inner = [number for number in chain.vertices if self.ranked.vertices[number].kind != "box"]
        if not inner:
            return
        columns = [self._column(chain, number) for number in inner]
        low, high = max(low for low, _ in columns), min(high for _, high in columns)
        if low - high <= self.metrics.lane * PUSH_LANES:
            self._line_up(chain, inner, low, max(low, high))
            return
        run: list[int] = []
        low, high = -FAR, FAR
        for number, (least, most) in zip(inner, columns, strict=True):
            if max(low, least) > min(high, most):
                self._line_up(chain, run, low, high)
                run, low, high = [], -FAR, FAR
            run.append(number)
            low, high = max(low, least), min(high, most)
        self._line_up(chain, run, low, high)

    def _column(self, chain: Chain, number: int) -> tuple[int, int]:
        """Return the bounds of an arrow at one of its bends if the neighbours of the bend do not move."""
        vertex = self.ranked.vertices[number]
        line = round(self.line(number, chain.arrow, leaves=True))
        least, most = self._room(self.ranked.rows[vertex.rank], vertex.place)
        return least + line, most + line

    def _line_up(self, chain: Chain, run: list[int], low: int, high: int) -> None:
        vertices = self.ranked.vertices
        lines = {number: round(self.line(number, chain.arrow, leaves=True)) for number in run}
        wishes = [(vertices[number].x + line, 0.1) for number, line in lines.items()]
        for number in dict.fromkeys((run[0], run[-1])):
            ends = [hop for hop in self._above[number] + self._below[number] if hop.other not in lines]
            wishes += [(vertices[hop.other].x + round(hop.at_other), hop.weight) for hop in ends]
        spot = _nearest(wishes[0][0], wishes, low, high)
        for number, line in lines.items():
            vertices[number].x = spot - line
            self._push(self.ranked.rows[vertices[number].rank], vertices[number].place)

    def _push(self, row: list[int], index: int) -> None:
        """Move the vertices to the right of a vertex to make room for it."""
        vertices = self.ranked.vertices
        for one, other in zip(row[index:], row[index + 1 :], strict=False):
            least = vertices[one].x + self.metrics.distance(vertices[one], vertices[other])
            if vertices[other].x >= least:
                return
            vertices[other].x = least

    def _room(self, row: list[int], index: int) -> tuple[int, int]:
        """Return the bounds within which a vertex can move if its neighbours do not."""
        vertices = self.ranked.vertices
        vertex = vertices[row[index]]
        low, high = -FAR, FAR
        if index:
            left = vertices[row[index - 1]]
            low = left.x + self.metrics.distance(left, vertex)
        if index + 1 < len(row):
            right = vertices[row[index + 1]]
            high = right.x - self.metrics.distance(vertex, right)
        return low, high


def _settle_row(row: list[int], shifts: list[int], hops: list[list[Hop]], spots: list[float]) -> None:
    # Each block of vertices has its preferred position, its weight and its size.
    blocks: list[tuple[float, float, int]] = []
    for number, shift in zip(row, shifts, strict=True):
        wish, weight = spots[number] * WEIGHT_REST, WEIGHT_REST
        for hop in hops[number]:
            wish += hop.weight * (spots[hop.other] + hop.at_other - hop.at_one)
            weight += hop.weight
        block = (wish / weight - shift, weight, 1)
        while blocks and blocks[-1][0] >= block[0]:
            wish, weight, size = blocks.pop()
            total = weight + block[1]
            block = ((wish * weight + block[0] * block[1]) / total, total, size + block[2])
        blocks.append(block)
    wishes = [wish for wish, _, size in blocks for _ in range(size)]
    for number, wish, shift in zip(row, wishes, shifts, strict=True):
        spots[number] = wish + shift


def _nearest(now: int, wishes: list[tuple[int, float]], low: int, high: int) -> int:
    """Return the position between two bounds that is nearest to the preferred ones by weight, or else the old one."""
    wanted = sorted(wish for wish, _ in wishes)
    if len(wanted) > WISHES_MAX:
        wanted = wanted[len(wanted) // 2 - 1 : len(wanted) // 2 + 2]
    spots = list(dict.fromkeys(max(low, min(high, spot)) for spot in (now, *wanted)))
    if len(spots) == 1:
        return spots[0]

    def badness(spot: int) -> tuple[float, int, int]:
        # Of two equally near positions, prefer the one where more lines are straight.
        far = sum(weight * abs(spot - wish) for wish, weight in wishes)
        return far, sum(spot != wish for wish, _ in wishes), abs(spot - now)

    return min(spots, key=badness)
