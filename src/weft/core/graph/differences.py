"""Compare two versions of a graph: its nodes and edges, and the fields of nodes in its documents. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.graph.model import GraphModel

Source = Mapping[str, Any]
"""The document of a graph as data."""


class ChangedParts(msgspec.Struct, frozen=True):
    """Named parts of a graph that only one version has, or that differ. An edge is named ``source>target``."""

    added: list[str]
    removed: list[str]
    changed: list[str]


def compare_nodes(old: GraphModel, new: GraphModel) -> ChangedParts:
    """Return the nodes that are not the same."""
    return _changed_parts(old.nodes, new.nodes)


def compare_edges(old: GraphModel, new: GraphModel) -> ChangedParts:
    """Return the edges that are not the same."""
    before, after = ({name: _without_order(edge) for name, edge in graph.edges.items()} for graph in (old, new))
    return _changed_parts(before, after)


def describe_changes(old: GraphModel, new: GraphModel, sources: tuple[Source, Source]) -> list[str]:
    """Say in a line each which nodes, edges and other parts of the document are added, removed and changed."""
    nodes, edges = compare_nodes(old, new), compare_edges(old, new)
    lines = [f"adds the node {name}" for name in nodes.added]
    lines += [f"removes the node {name}" for name in nodes.removed]
    before, after = (_nodes_of_source(source) for source in sources)
    for name in nodes.changed:
        fields = _different_fields(before.get(name), after.get(name))
        lines.append(f"changes {name}{': ' if fields else ''}{', '.join(fields)}")
    gone = {*nodes.added, *nodes.removed}
    lines += [f"adds {_edge_words(name)}" for name in edges.added if gone.isdisjoint(name.split(">"))]
    lines += [f"removes {_edge_words(name)}" for name in edges.removed if gone.isdisjoint(name.split(">"))]
    lines += [f"changes {_edge_words(name)}" for name in edges.changed]
    lines += [f"changes {name}" for name in _different_fields(*sources) if name != "nodes"]
    return lines


def _edge_words(name: str) -> str:
    """Return what an edge is called. The one to an entry of the graph comes from no node."""
    return f"the edge {name}" if name.partition(">")[0] else f"the entry {name[1:]}"


def _nodes_of_source(source: Source) -> Mapping[str, Any]:
    nodes = source.get("nodes")
    return nodes if isinstance(nodes, Mapping) else {}


def _different_fields(old: Any, new: Any) -> list[str]:
    """Return the names of the fields that are not the same in two parts of a document."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return []
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]


def _without_order(edge: Any) -> Any:
    """Return an edge without its place in the document, which changes when another one is added."""
    return msgspec.structs.replace(edge, ordinal=0)


def _changed_parts(a: Mapping[str, Any], b: Mapping[str, Any]) -> ChangedParts:
    return ChangedParts(
        added=[name for name in b if name not in a],
        removed=[name for name in a if name not in b],
        changed=[name for name in a if name in b and a[name] != b[name]],
    )
