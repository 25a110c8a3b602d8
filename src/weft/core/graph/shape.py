"""The structure of a graph: numbered nodes and edges without their data, for the analyses. Pure.

Node 0 is start; the others follow in document order. Edges get their final ordinals here: the edges of start, then node
by node the main edges in document order, timeout edges, the back edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from weft.core.findings import At, Problems, closest, did_you_mean, suggestion_text
from weft.core.graph.expressions import DocumentReader
from weft.core.graph.folded import FoldedGraph, FoldedNode, FoldedRoute
from weft.core.graph.model import START, EdgeKind, Expr


@dataclass(slots=True)
class Arc:
    """An edge during analysis. ``same``: arcs of one tier with the same value are always taken together."""

    source: int
    to: int
    kind: EdgeKind
    at: At
    tier: int = 0
    route: FoldedRoute | None = None
    when: Expr | None = None
    each: Expr | None = None
    mentions_error: bool = False
    same: bytes = b""
    ordinal: int = -1
    opens: bool = False
    exits: list[int] = field(default_factory=list)
    loop: int = -1

    @property
    def multiplies(self) -> bool:
        """Whether the edge may open several branches: for_each and spawn."""
        return self.each is not None or bool(self.route is not None and self.route.copies)


@dataclass(slots=True)
class Shape:
    """The nodes and edges. ``out`` and ``into`` have only forward arcs. ``back``: the back arcs, by source."""

    folded: FoldedGraph
    names: list[str]
    nodes: list[FoldedNode | None]
    arcs: list[Arc] = field(default_factory=list)
    out: list[list[Arc]] = field(default_factory=list)
    into: list[list[Arc]] = field(default_factory=list)
    back: dict[int, Arc] = field(default_factory=dict)

    def node(self, index: int) -> FoldedNode:
        """Return a real node, not start."""
        found = self.nodes[index]
        assert found is not None
        return found


def build_shape(folded: FoldedGraph, reader: DocumentReader, problems: Problems) -> Shape:
    """Collect all edges of the document. Report unknown targets and replace them by the most similar name."""
    names = [START, *folded.nodes]
    shape = Shape(folded, names, [None, *folded.nodes.values()])
    number = {name: index for index, name in enumerate(names)}
    own = [
        [arc for arc in _arcs_of(node, index, reader) if _resolve_target(arc, number, problems)]
        for index, node in enumerate(folded.nodes.values(), 1)
    ]
    shape.arcs = [*_start_arcs(folded, own, number, problems), *(arc for arcs in own for arc in arcs)]
    for ordinal, arc in enumerate(shape.arcs):
        arc.ordinal = ordinal
        if arc.kind == "back":
            shape.back[arc.source] = arc
    link_arcs(shape)
    for index, node in enumerate(folded.nodes.values(), 1):
        if node.join == "edges" and len(shape.into[index]) < 2:
            node.join = "plain"  # nothing to wait for
            if node.deadline is not None:
                message = f"{node.id} has one incoming edge, so it never waits and its join timeout has no effect."
                problems.warn("never_taken", node.at, message)
                node.deadline = None
    return shape


def link_arcs(shape: Shape) -> None:
    """Fill in ``out`` and ``into`` from the arcs."""
    shape.out = [[] for _ in shape.names]
    shape.into = [[] for _ in shape.names]
    for arc in shape.arcs:
        if arc.kind != "back":
            shape.out[arc.source].append(arc)
            shape.into[arc.to].append(arc)


def _arcs_of(node: FoldedNode, index: int, reader: DocumentReader) -> Iterator[Arc]:
    ranks = {tier: rank for rank, tier in enumerate(sorted({route.tier for route in node.routes}))}
    for route in node.routes:
        yield _main_arc(route, index, ranks[route.tier], node.id, reader)
    repeat = node.repeat
    if repeat is not None:
        for route in repeat.exhausted or ():
            yield Arc(index, -1, "timeout", route.at, route=route)
        back = FoldedRoute(repeat.back_to, (*repeat.at, "back_to"))
        yield Arc(index, -1, "back", back.at, route=back)


def _main_arc(route: FoldedRoute, index: int, tier: int, name: str, reader: DocumentReader) -> Arc:
    arc = Arc(index, -1, "main", route.at, tier, route)
    if route.when is not None:
        arc.when, arc.mentions_error = reader.read("condition", route.when, name)
    if route.each is not None:
        arc.each = reader.read("expression", route.each, name)[0]
    arc.mentions_error = arc.mentions_error or route.errors is not None
    if arc.when is not None or route.errors is not None:
        arc.same = msgspec.json.encode([arc.when and arc.when.source, route.errors], order="sorted")
    return arc


def _resolve_target(arc: Arc, number: dict[str, int], problems: Problems) -> bool:
    """Set the target of the arc. Returns False if there is no such node and no similar name."""
    assert arc.route is not None
    name = arc.route.to
    if name in number and name != START:
        arc.to = number[name]
        return True
    near = "" if problems.full else closest(name, list(number)[1:])
    problems.add("unknown_node", arc.at, f'no node "{name}".', suggestion_text(near))
    arc.to = number[near] if near else -1
    return bool(near)


def _start_arcs(folded: FoldedGraph, own: list[list[Arc]], number: dict[str, int], problems: Problems) -> Iterator[Arc]:
    reached = {arc.to for arcs in own for arc in arcs if arc.kind != "back"}
    if folded.entries is None:
        for name, index in number.items():
            if name != START and index not in reached and name not in folded.targets:
                yield Arc(0, index, "main", folded.nodes[name].at)
        return
    for name, at in folded.entries:
        if name not in folded.nodes:
            problems.add("unknown_node", at, f'no node "{name}".', did_you_mean(name, folded.nodes))
            continue
        if number[name] in reached:
            problems.add(
                "bad_start", at, f'"{name}" cannot be a start: other nodes lead to it.', "Put a pass node in front."
            )
        yield Arc(0, number[name], "main", at)
