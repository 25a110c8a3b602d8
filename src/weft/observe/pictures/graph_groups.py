"""The groups of a graph's picture: the branches of each fan-out and the body of each loop. Pure."""

from __future__ import annotations

from collections import Counter

from weft.core.graph.model import GraphModel
from weft.core.graph.patch.static_scopes import Levels, StaticScopes
from weft.observe.pictures.model import BoxGroup


class GraphGroups:
    """The groups that the nodes of a graph are in. A loop of one node is left out."""

    def __init__(self, graph: GraphModel) -> None:
        self._graph = graph
        scopes = StaticScopes(graph)
        found = {node: self._path(min(works, default=())) for node, works in scopes.works.items()}
        members = Counter(group for path in found.values() for group in path)
        self._paths = {
            node: tuple(one for one in path if one[0] == "fan_out" or members[one] > 1) for node, path in found.items()
        }

    def _path(self, levels: Levels) -> tuple[tuple[str, str], ...]:
        """Return the groups of a scope, outermost first, each by its kind and the node that opens it."""
        edges, loops = self._graph.edges, self._graph.loops
        named = [
            ("fan_out", edges[name].source) if kind == "f" else ("loop", loops[name].header) for kind, name in levels
        ]
        return tuple(dict.fromkeys(named))

    def of(self, node: str) -> str:
        """Return the innermost group of a node; empty if it is in none."""
        path = self._paths.get(node, ())
        return _id(path[-1]) if path else ""

    def all(self) -> tuple[BoxGroup, ...]:
        """Return the groups, outer ones first."""
        found: dict[str, BoxGroup] = {}
        for path in self._paths.values():
            parent = ""
            for kind, opener in path:
                group = _id((kind, opener))
                title = f"{'loop' if kind == 'loop' else 'branches'} of {opener or 'the start'}"
                found.setdefault(group, BoxGroup(group, title, kind, parent))  # type: ignore[arg-type]  # one of two kinds
                parent = group
        return tuple(found.values())


def _id(group: tuple[str, str]) -> str:
    kind, opener = group
    return f"{kind} {opener}"
