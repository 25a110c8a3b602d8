"""Reduce a graph for the soundness check: no data, and small numbers in place of large ones. Pure.

Saves, inputs and merges have no influence on where tokens go. If a hundred branches behave like two, two are opened.
The number that must arrive shrinks accordingly, so that a fan-in that may fire early still may.
"""

from __future__ import annotations

import msgspec

from weft.core.graph.model import Edge, FanIn, FanInNeed, GraphModel, Node, Repeat

ROUNDS_MAX = 2
SHARE_MAX = 60.0
"""A percentage that needs two of three branches, so that one may be late."""


def reduce_graph(graph: GraphModel, *, rounds: int = ROUNDS_MAX, exact: bool = False) -> GraphModel:
    """Return the reduced graph that the search plays. ``exact``: keep the numbers that fan-ins need."""
    joins = [node for node in graph.nodes.values() if node.fan_in is not None]
    needs = {node.id: node.fan_in.need if exact and node.fan_in else _reduce_need(graph, node) for node in joins}
    return msgspec.structs.replace(
        graph,
        nodes={name: _reduce_node(node, needs.get(name), rounds) for name, node in graph.nodes.items()},
        edges={name: _reduce_edge(graph, edge, needs) for name, edge in graph.edges.items()},
        input=None,
        state=None,
        output=None,
    )


def item_counts(graph: GraphModel, node: Node) -> tuple[int, ...]:
    """Return the numbers of items to try for a for_each of a (reduced) node."""
    fan_in = graph.nodes[node.closed_by].fan_in if node.closed_by else None
    need = fan_in.need if fan_in is not None else FanInNeed()
    if need.kind == "all":
        return (0, 1, 2)
    if need.kind == "percent":
        return (0, 1, 2) if need.of(2) < 2 else (0, 1, 2, 3)
    return tuple(sorted({0, 1, need.count, need.count + 1}))


def _reduce_node(node: Node, need: FanInNeed | None, rounds: int) -> Node:
    fan_in, repeat = node.fan_in, node.repeat
    if fan_in is not None and need is not None:
        fan_in = FanIn(fan_in.opener, need, None, fan_in.early)
    if repeat is not None:
        repeat = _reduce_rounds(repeat, rounds)
    return msgspec.structs.replace(node, save=[], input=None, remembered=False, fan_in=fan_in, repeat=repeat)


def _reduce_rounds(repeat: Repeat, rounds: int) -> Repeat:
    return msgspec.structs.replace(repeat, at_most=min(repeat.at_most, rounds))


def _reduce_need(graph: GraphModel, fan_in: Node) -> FanInNeed:
    assert fan_in.fan_in is not None
    need = fan_in.fan_in.need
    if need.kind == "percent" and SHARE_MAX < need.percent < 100:
        return FanInNeed("percent", percent=SHARE_MAX)
    if need.kind == "count" and need.count > 2 and len(_opening_edges(graph, fan_in.fan_in.opener)) == 1:
        return FanInNeed("count", 2)
    return need


def _opening_edges(graph: GraphModel, opener: str) -> list[str]:
    return graph.nodes[opener].opening if opener else graph.start


def _reduce_edge(graph: GraphModel, edge: Edge, needs: dict[str, FanInNeed]) -> Edge:
    """Return the edge with as few branches as are needed to show what many would do."""
    if edge.copies < 3:
        return edge
    closed_by = graph.nodes[edge.source].closed_by
    fan_in = graph.nodes[closed_by].fan_in if closed_by else None
    if fan_in is None or fan_in.need.kind == "all":
        return msgspec.structs.replace(edge, copies=2)
    if fan_in.need.kind == "count" and needs[closed_by] == fan_in.need:
        return msgspec.structs.replace(edge, copies=min(edge.copies, fan_in.need.count + 1))
    spare = fan_in.need.of(edge.copies) < edge.copies
    return msgspec.structs.replace(edge, copies=3 if spare else 2)
