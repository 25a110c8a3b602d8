"""The static scopes of a compiled graph, as lists of opening edges and loops. Pure."""

from __future__ import annotations

from functools import reduce

from weft.core.graph.derived_names import RUN_SCOPE, scope_name
from weft.core.graph.model import Edge, GraphModel
from weft.core.graph.tokens import GraphState, Path

Levels = tuple[tuple[str, str], ...]
"""A static scope, outermost first: ``("f", edge)`` is a branch, ``("l", loop)`` a loop."""


def name_of(levels: Levels) -> str:
    """Return the name of a static scope."""
    return reduce(scope_name, (level for _, level in levels), RUN_SCOPE)


class StaticScopes:
    """Where each node works, and which edges deliver to it in which scope."""

    def __init__(self, graph: GraphModel) -> None:
        self.graph = graph
        self.works: dict[str, set[Levels]] = {name: set() for name in graph.nodes}
        self.delivers: dict[str, dict[Levels, list[str]]] = {name: {} for name in graph.nodes}
        todo: list[tuple[Edge, Levels]] = [(graph.edges[name], ()) for name in graph.start]
        while todo:
            edge, scope = todo.pop()
            inside = self.along(edge, scope)
            delivered = self.delivers[edge.to].setdefault(inside, [])
            if edge.name in delivered:
                continue
            delivered.append(edge.name)
            working = self.entered(edge.to, inside)
            if working in self.works[edge.to]:
                continue
            self.works[edge.to].add(working)
            todo += [(one, working) for one in self.out(edge.to)]
        scopes = {levels for known in self.delivers.values() for levels in known}
        self._names = {name_of(levels): levels for levels in scopes}

    def out(self, node: str) -> list[Edge]:
        """Return the forward edges of a node."""
        found = self.graph.nodes[node]
        names = found.main if found.repeat is None else dict.fromkeys((*found.main, *found.repeat.exhausted))
        return [self.graph.edges[name] for name in names]

    def along(self, edge: Edge, scope: Levels) -> Levels:
        """Return the scope behind an edge."""
        while scope and scope[-1][0] == "l" and scope[-1][1] in edge.exits:
            scope = scope[:-1]
        return (*scope, ("f", edge.name)) if edge.opens else scope

    def entered(self, node: str, scope: Levels) -> Levels:
        """Return the scope in which a node works if something is delivered to it in this scope."""
        found = self.graph.nodes[node]
        if found.fan_in is not None and scope:
            scope = scope[:-1]
        return (*scope, *(("l", loop) for loop in found.heads))

    def named(self, name: str) -> Levels:
        """Return the scope with this name; the scope of the run if it is not known."""
        return self._names.get(name, ())

    def exists(self, levels: Levels) -> bool:
        """Return whether something is delivered or works in this scope, or in one inside it."""
        size = len(levels)
        scopes = (scope for known in (*self.works.values(), *self.delivers.values()) for scope in known)
        return any(scope[:size] == levels for scope in scopes)


def levels_of(state: GraphState, path: Path, scopes: StaticScopes) -> Levels:
    """Return the static scope of a path in a run."""
    found: list[tuple[str, str]] = []
    if path and path[0].kind == "f" and state.frames[path[0].id].scope:
        found += scopes.named(state.frames[path[0].id].scope)
    for seg in path:
        if seg.kind == "f":
            found.append(("f", state.frames[seg.id].branches[seg.n].edge))
        else:
            found.append(("l", state.loops[seg.id].loop))
    return tuple(found)
