"""Find the loops: header, body, latches, nesting, and which edges leave them. Pure, near-linear.

A back edge goes from a latch to a header that dominates it. The body is the header and every node that reaches the
latch without passing the header. Bodies of different headers are nested or disjoint. Of two loops with one header, the
one with a strictly larger body is the outer loop; if neither contains the other they are one loop with several latches.
Headers are processed innermost first and a finished loop is folded into its header, so every edge is walked once.

Rules: docs/internals/graph.md#11-loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.core.findings import Problems
from weft.core.graph.dominators import Flow
from weft.core.graph.shape import Arc, Shape

EXITS_PER_EDGE_MAX = 64
"""How many loops an edge may leave, on average. Beyond this the graph is ``too_tangled``."""

STEPS_PER_NODE_MAX = 64
"""Visits per node while bodies are collected, on average. Only loops that cross each other need more than one."""


@dataclass(slots=True)
class Ring:
    """A loop during analysis: one per body."""

    header: int
    latches: list[Arc]
    parent: int = -1
    exits: list[int] = field(default_factory=list)
    span: tuple[int, int] = (0, 0)
    """The numbers of the first and last loop inside, starting with this one: nesting as intervals."""


@dataclass(slots=True)
class _Layer:
    """A body being collected: its latches, those that reach no other (``tips``), and the nodes in no inner body."""

    latches: list[Arc]
    tips: set[int]
    members: set[int]


class Loops:
    """``rings`` by number.

    ``around``: the innermost loop of each node (-1: none). ``heads``: by header, outermost first.
    """

    def __init__(self, shape: Shape, flow: Flow) -> None:
        self.rings: list[Ring] = []
        self.around = [-1] * len(shape.names)
        self.heads: list[list[int]] = [[] for _ in shape.names]
        self.steps_left = STEPS_PER_NODE_MAX * (len(shape.names) + len(shape.arcs))
        self._fold = list(range(len(shape.names)))
        self._shape = shape
        self._flow = flow

    def holds(self, ring: int, node: int) -> bool:
        """Return whether the node is in the body."""
        inner = self.around[node]
        first, last = self.rings[ring].span
        return first <= inner <= last

    def collect(self, header: int, latches: list[Arc]) -> None:
        """Make the loops of one header. The loops of all headers inside them exist already."""
        place = self._flow.place
        layers: list[_Layer] = []
        home: dict[int, _Layer] = {}
        for arc in sorted(latches, key=lambda arc: (place[self._outermost_header(arc.source)], arc.ordinal)):
            latch = self._outermost_header(arc.source)
            if layers and latch in layers[-1].tips:
                layers[-1].latches.append(arc)  # the same inner loop contains both latches: one body
            else:
                layers.append(self._collect_latch_body(arc, header, layers, home))
        self._close_layers(header, layers)

    def _collect_latch_body(self, arc: Arc, header: int, layers: list[_Layer], home: dict[int, _Layer]) -> _Layer:
        """Collect the body of one more latch, united with those bodies of which neither contains the other.

        A tip leads directly out of its body (a node in between would reach another tip). So walking back from the latch
        meets every tip that reaches it without entering that body.
        """
        latch = self._outermost_header(arc.source)
        layer = _Layer([arc], {latch}, set())
        met = {header}
        seen = {header}
        self._walk_back([latch], layer, home, (seen, met))
        while layers and not layers[-1].tips <= met:
            other = layers.pop()
            within = [node for node in met if home.get(node) is other]
            other.tips -= met
            layer = _unite_bodies(other, layer, home)
            self._walk_back(within, layer, home, (seen, met))
        return layer

    def _walk_back(
        self, stack: list[int], layer: _Layer, home: dict[int, _Layer], known: tuple[set[int], set[int]]
    ) -> None:
        """Collect nodes that reach those in ``stack`` and are in no other body.

        Add nodes of other bodies to ``met``.
        """
        seen, met = known
        while stack and self.steps_left > 0:
            node = stack.pop()
            if node in seen:
                continue
            self.steps_left -= 1
            seen.add(node)
            if node not in home:
                home[node] = layer
                layer.members.add(node)
            for arc in self._shape.into[node]:
                if self._flow.reached(arc.source):
                    source = self._outermost_header(arc.source)
                    if home.get(source, layer) is layer:
                        stack.append(source)
                    else:
                        met.add(source)

    def _outermost_header(self, node: int) -> int:
        """Return the header that the outermost finished loop of the node was folded into, or the node itself."""
        root = node
        while self._fold[root] != root:
            root = self._fold[root]
        while self._fold[node] != root:
            self._fold[node], node = root, self._fold[node]
        return root

    def _close_layers(self, header: int, layers: list[_Layer]) -> None:
        for layer in layers:
            ring = len(self.rings)
            self.rings.append(Ring(header, sorted(layer.latches, key=lambda arc: arc.ordinal)))
            if self.heads[header]:
                self.rings[ring - 1].parent = ring
            else:
                self.around[header] = ring
            for member in layer.members:
                if self.heads[member]:
                    self.rings[self.heads[member][0]].parent = ring
                else:
                    self.around[member] = ring
                self._fold[member] = header
            self.heads[header].insert(0, ring)


def _unite_bodies(a: _Layer, b: _Layer, home: dict[int, _Layer]) -> _Layer:
    """Unite two bodies into one loop. The smaller one is moved, so that each node moves rarely."""
    big, small = (a, b) if len(a.members) >= len(b.members) else (b, a)
    for node in small.members:
        home[node] = big
    big.members |= small.members
    big.latches += small.latches
    big.tips |= small.tips
    return big


def find_loops(shape: Shape, flow: Flow, problems: Problems) -> Loops:
    """Return all loops of the graph, numbered outermost first. Report back edges that close no loop."""
    loops = Loops(shape, flow)
    by_header: dict[int, list[Arc]] = {}
    for arc in shape.back.values():
        if not flow.reached(arc.source):
            continue
        if flow.reached(arc.to) and flow.dominates(arc.to, arc.source):
            by_header.setdefault(arc.to, []).append(arc)
        else:
            _note_irreducible(arc, shape, problems)
    for header in sorted(by_header, key=lambda node: flow.place[node], reverse=True):
        loops.collect(header, by_header[header])
    if loops.steps_left <= 0:
        problems.add("too_tangled", ("nodes",), "too many loops with the same header overlap.")
    _number_outer_loops_first(loops)
    for number, ring in enumerate(loops.rings):
        for arc in ring.latches:
            arc.loop = number
    return loops


def _note_irreducible(arc: Arc, shape: Shape, problems: Problems) -> None:
    source, header = shape.names[arc.source], shape.names[arc.to]
    problems.add(
        "irreducible_loop",
        arc.at,
        f"{source} cannot go back to {header}: there is a path to {source} that does not pass through {header}.",
        "A loop can only be entered at the node that it goes back to.",
    )


def _number_outer_loops_first(loops: Loops) -> None:
    """Number the loops so that each outer loop is directly followed by the loops inside it."""
    inside: dict[int, list[int]] = {}
    for ring, info in reversed(list(enumerate(loops.rings))):
        inside.setdefault(info.parent, []).append(ring)
    order: list[int] = []
    stack = list(reversed(inside.get(-1, [])))
    while stack:
        ring = stack.pop()
        order.append(ring)
        stack += reversed(inside.get(ring, []))
    new = {-1: -1, **{old: number for number, old in enumerate(order)}}
    rings = [loops.rings[old] for old in order]
    size = [1] * len(rings)
    for number in range(len(rings) - 1, -1, -1):
        rings[number].parent = new[rings[number].parent]
        if rings[number].parent >= 0:
            size[rings[number].parent] += size[number]
    for number, info in enumerate(rings):
        info.span = (number, number + size[number] - 1)
    loops.rings = rings
    loops.around = [new[ring] for ring in loops.around]
    loops.heads = [[new[ring] for ring in heads] for heads in loops.heads]


def find_exits(shape: Shape, loops: Loops, problems: Problems) -> bool:
    """Set the loops that each edge leaves, innermost first. Returns False if there are too many."""
    total = 0
    for arc in shape.arcs:
        ring = loops.around[arc.source]
        while ring >= 0 and not loops.holds(ring, arc.to):
            arc.exits.append(ring)
            ring = loops.rings[ring].parent
        total += len(arc.exits)
        if total > EXITS_PER_EDGE_MAX * (len(shape.arcs) + 16):
            problems.add("too_tangled", arc.at, "too many loops are nested.")
            return False
    return True
