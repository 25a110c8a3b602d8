"""Compute which nodes can be reached from which, with integers as bit sets. Pure."""

from __future__ import annotations

from weft.core.graph.model import GraphModel


class Reach:
    """Reachability along all edges, including back edges. Computed on first use."""

    def __init__(self, graph: GraphModel) -> None:
        self._graph = graph
        self._bit = {name: 1 << index for index, name in enumerate(graph.nodes)}
        self._from: dict[str, int] = {}

    def leads(self, source: str, to: str) -> bool:
        """Return whether a token at one node may reach another along at least one edge."""
        if not self._from:
            self._compute_reach()
        return bool(self._from[source] & self._bit[to])

    def _compute_reach(self) -> None:
        before: dict[str, list[str]] = {name: [] for name in self._graph.nodes}
        self._from = dict.fromkeys(self._graph.nodes, 0)
        for edge in self._graph.edges.values():
            if edge.source:
                before[edge.to].append(edge.source)
                self._from[edge.source] |= self._bit[edge.to]
        waiting = dict.fromkeys(reversed(self._graph.nodes))
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            grown = self._from[name]
            for source in before[name]:
                known = self._from[source]
                if known | grown != known:
                    self._from[source] = known | grown
                    waiting[source] = None


def may_repeat(graph: GraphModel) -> frozenset[str]:
    """Return nodes that a second token may enter: several edges lead there, or one that leaves a loop."""
    return frozenset(
        name
        for name, node in graph.nodes.items()
        if node.join == "plain" and (len(node.incoming) > 1 or any(graph.edges[name].exits for name in node.incoming))
    )


def fed_joins(graph: GraphModel, node: str, reach: Reach) -> list[str]:
    """Return the edge joins that tokens of a node reach without being joined by a fan-in first.

    A fan-in joins them only if it closes a frame around the node. If its fan-out comes after the node, each token
    passes it with its own frame.
    """
    found: list[str] = []
    seen = {node}
    stack = [node]
    while stack:
        here = graph.nodes[stack.pop()]
        for name in (*(o for tier in here.tiers for o in tier), *(here.repeat.exhausted if here.repeat else ())):
            target = graph.nodes[graph.edges[name].to]
            if target.id in seen:
                continue
            opener = target.fan_in.opener if target.fan_in is not None else node
            if opener != node and not (opener and reach.leads(node, opener)):
                continue
            seen.add(target.id)
            if target.join == "edges":
                found.append(target.id)
            stack.append(target.id)
    return found
