"""What can still happen in one scope of a run, in a graph with data forgotten. Pure.

Rules: docs/internals/patches.md#what-can-still-happen.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from weft.core.graph.model import Edge, GraphModel, Node
from weft.core.graph.patch.static_scopes import StaticScopes
from weft.core.graph.tokens import GraphState, Path


class Begin(msgspec.Struct):
    """Where something can still begin in a scope."""

    at_work: list[tuple[str, bool]] = []
    """Nodes at which tokens work, each with whether everything behind it may run again."""
    reached: list[tuple[str, bool]] = []
    """Nodes that something comes to for certain: joins at which a token waits, fan-ins of open frames."""
    exits: list[str] = []
    """Edges out of loops that run in this scope and that no token has taken."""


class Reached(msgspec.Struct):
    """The result: nodes that may still be come to, and edges that can deliver a token or a skip."""

    nodes: set[str] = set()
    edges: set[str] = set()
    freely: set[str] = set()
    """Edges behind a moved or started token."""


def nothing_reached() -> Reached:
    """Return that nothing can happen."""
    return Reached(set(), set(), set())


def begin_in(state: GraphState, graph: GraphModel, path: Path, free: Container[str]) -> Begin:
    """Find where something can begin in a scope. ``free``: tokens behind which everything may run again."""
    found = Begin([], [], [])
    for token in state.tokens.values():
        if token.path != path or token.mode == "parked":
            continue
        # A queued token and one that waits at a join have not entered their node yet.
        kind = found.reached if token.mode in ("joining", "queued") else found.at_work
        kind.append((token.node, token.id in free))
    for frame in state.frames.values():
        if frame.path == path and frame.fan_in and not frame.fired:
            found.reached.append((frame.fan_in, False))
    for run in state.loops.values():
        if run.path == path and run.live and run.loop in graph.loops:
            exits = (graph.edges[name] for name in graph.loops[run.loop].exits)
            found.exits += [edge.name for edge in exits if edge.exits[-1] == run.loop and edge.name not in run.taken]
    return found


class ScopeReach:
    """Walks through a graph, inside one scope at a time."""

    def __init__(self, scopes: StaticScopes) -> None:
        self.graph = scopes.graph
        self._scopes = scopes
        self._shadowed_edges: dict[str, set[str]] = {}
        """The edges of nodes that no token takes, as far as they were needed."""

    def walk(self, begin: Begin, own: str, ran: Container[str], *, tokens: bool = False) -> Reached:
        """Return what can still happen. ``own`` is the innermost loop of the scope, ``ran`` the nodes that have run.

        Nothing is expected behind a node that has run. With ``tokens``, only edges that a token may take count.
        """
        found = Reached(set(), set(), set())
        visited: dict[str, bool] = {}
        todo: list[tuple[str, bool, bool]] = [(node, free, True) for node, free in begin.at_work]
        todo += [(node, free, False) for node, free in begin.reached]
        found.nodes.update(node for node, _ in begin.reached)
        expanded_at_work: set[tuple[str, bool]] = set()
        certain = {node for node, _ in begin.reached}
        for name in begin.exits:
            self._follow_edge(self.graph.edges[name], self.graph.edges[name].source, free=False, found=found, todo=todo)
        while todo:
            node, free, at_work = todo.pop()
            if at_work:
                if (node, free) in expanded_at_work:
                    continue
                expanded_at_work.add((node, free))
            else:
                if visited.get(node) in (True, free):
                    continue
                visited[node] = free
                if node in ran and not free and node not in certain:
                    continue
            for edge in self._edges_behind(node, own, at_work=at_work):
                if not tokens or not self._is_shadowed(edge):
                    self._follow_edge(edge, edge.source, free=free, found=found, todo=todo)
        return found

    def _is_shadowed(self, edge: Edge) -> bool:
        known = self._shadowed_edges.get(edge.source)
        if known is None:
            known = self._shadowed_edges[edge.source] = _shadowed_edges(self.graph, self.graph.nodes[edge.source])
        return edge.name in known

    def _follow_edge(
        self, edge: Edge, source: str, *, free: bool, found: Reached, todo: list[tuple[str, bool, bool]]
    ) -> None:
        to = self.graph.nodes[source].closed_by if edge.opens else edge.to
        found.edges.add(edge.name)
        if free:
            found.freely.add(edge.name)
        if to:
            found.nodes.add(to)
            todo.append((to, free, False))

    def _edges_behind(self, name: str, own: str, *, at_work: bool) -> Iterable[Edge]:
        """Return the edges behind a node that stay in the scope. Behind the header of a loop these are its exits."""
        node = self.graph.nodes[name]
        if node.heads and not (at_work and own in node.heads):
            outer = node.heads[0]
            exits = (self.graph.edges[edge] for edge in self.graph.loops[outer].exits)
            edges = [edge for edge in exits if edge.exits[-1] == outer]
        else:
            edges = self._scopes.out(name)
        return [edge for edge in edges if not own or own not in edge.exits]

    def leads(self, source: str, target: str) -> bool:
        """Return whether there is a way over forward edges from one node to another."""
        seen, todo = {source}, [source]
        while todo:
            for edge in self._scopes.out(todo.pop()):
                if edge.to == target:
                    return True
                if edge.to not in seen:
                    seen.add(edge.to)
                    todo.append(edge.to)
        return False


def _shadowed_edges(graph: GraphModel, node: Node) -> set[str]:
    """Return the edges that no token takes, because a tier before them always matches."""
    if node.fan_out == "all":
        return set()
    found: set[str] = set()
    matched = False
    for tier in node.tiers:
        for name in tier:
            edge = graph.edges[name]
            if edge.mentions_error:
                continue
            if matched:
                found.add(name)
            elif node.fan_out == "first_match":
                matched = _always_matches(edge)
        if node.fan_out != "first_match":
            matched = matched or any(_always_matches(graph.edges[name]) for name in tier)
    return found


def _always_matches(edge: Edge) -> bool:
    return edge.when is None and edge.errors is None and not edge.mentions_error
