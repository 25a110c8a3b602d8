"""Which nodes, edges and loops of a new graph are those of the old one. Pure.

Rules: docs/internals/patches.md#identity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from weft.core.graph.model import Edge, GraphModel

GONE = "~"
"""Separates the name of an edge that is gone from a number, if another edge has taken its name."""

EdgePair = tuple[str, str, str]


class GraphIdentity(msgspec.Struct, frozen=True):
    """What has which name in the new graph. What is gone is in none of the mappings."""

    nodes: dict[str, str]
    edges: dict[str, str]
    loops: dict[str, str]

    def node(self, name: str) -> str:
        """Return the new name of a node; "" if it is gone."""
        return self.nodes.get(name, "")

    def back(self) -> dict[str, str]:
        """Return the old names of edges by their new ones."""
        return {new: old for old, new in self.edges.items()}


def identify(old: GraphModel, new: GraphModel, rename: Mapping[str, str]) -> GraphIdentity:
    """Find out what stays the same."""
    nodes = {name: rename.get(name, name) for name in old.nodes}
    nodes = {name: now for name, now in nodes.items() if now in new.nodes}
    if len(set(nodes.values())) < len(nodes):  # a renamed node comes before one that has the name already
        taken = set(rename.values())
        nodes = {name: now for name, now in nodes.items() if name in rename or now not in taken}
    edges = _identify_edges(old, new, nodes)
    return GraphIdentity(nodes, edges, _identify_loops(old, new, nodes))


def _identify_edges(old: GraphModel, new: GraphModel, nodes: Mapping[str, str]) -> dict[str, str]:
    before, after = _by_pair(old.edges.values(), nodes), _by_pair(new.edges.values(), None)
    found: dict[str, str] = {}
    for pair, olds in before.items():
        news = list(after.get(pair, ()))
        if len(olds) == len(news) == 1:  # the same, whatever their content
            found[olds[0].name] = news[0].name
            continue
        left = []
        for edge in olds:
            same = next((one for one in news if _edge_content(one) == _edge_content(edge)), None)
            if same is None:
                left.append(edge)
            else:
                news.remove(same)
                found[edge.name] = same.name
        for edge, now in zip(left, news, strict=False):
            found[edge.name] = now.name
    return _with_new_heads(old, new, nodes, found)


def _by_pair(edges: Iterable[Edge], nodes: Mapping[str, str] | None) -> dict[EdgePair, list[Edge]]:
    found: dict[EdgePair, list[Edge]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: edge.ordinal):
        source, to = edge.source, edge.to
        if nodes is not None:
            if (source and source not in nodes) or to not in nodes:
                continue
            source, to = nodes.get(source, ""), nodes[to]
        found[source, to, edge.kind].append(edge)
    return found


def _edge_content(edge: Edge) -> tuple[object, ...]:
    when = edge.when.source if edge.when is not None else None
    each = edge.each.collection.source if edge.each is not None else None
    return (edge.tier, msgspec.json.encode(when), each, edge.copies, edge.width, edge.errors)


def _with_new_heads(
    old: GraphModel, new: GraphModel, nodes: Mapping[str, str], found: dict[str, str]
) -> dict[str, str]:
    """Add opening edges whose head has changed: an opener lost one and got one of the same kind."""
    known = set(found.values())
    for name, now in [("", ""), *nodes.items()]:
        lost = [old.edges[edge] for edge in _edges_opened_at(old, name) if edge not in found]
        got = [new.edges[edge] for edge in _edges_opened_at(new, now) if edge not in known]
        if len(lost) == len(got) == 1 and _multiplicity(lost[0]) == _multiplicity(got[0]):
            found[lost[0].name] = got[0].name
    return found


def _edges_opened_at(graph: GraphModel, node: str) -> list[str]:
    if node:
        return graph.nodes[node].opening
    return [name for name in graph.start if graph.edges[name].opens]


def _multiplicity(edge: Edge) -> tuple[object, int]:
    return (edge.each.collection.source if edge.each is not None else None, edge.copies)


def _identify_loops(old: GraphModel, new: GraphModel, nodes: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, loop in old.loops.items():
        latches = {nodes.get(latch, "") for latch in loop.latches}
        for now, other in new.loops.items():
            same = nodes.get(loop.header, "") == other.header and latches & set(other.latches)
            if same and now not in found.values():
                found[name] = now
                break
    return found


def rename_remembered(
    remembered: Iterable[str], old: GraphModel, new: GraphModel, same: GraphIdentity, rev: int
) -> dict[str, str]:
    """Return the new names of edges that a run remembers, where they differ.

    An edge that is gone keeps its name, so that an undo finds it again, unless another edge has that name now.
    """
    found: dict[str, str] = {}
    taken = set(same.edges.values())
    for name in remembered:
        now = same.edges.get(name, "") if name in old.edges else ""
        if not now:
            plain = name.partition(GONE)[0]
            if plain not in new.edges or plain in taken:
                now = name if name not in new.edges else f"{plain}{GONE}{rev}"
            else:
                now = plain
                taken.add(plain)
        if now != name:
            found[name] = now
    return found
