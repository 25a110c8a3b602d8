"""Compare two versions of a graph: operations on the document, and nodes and edges that are not the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.graph.model import GraphModel
from weft.observe.json_diff import patch_operations


class ChangedParts(msgspec.Struct, frozen=True):
    """Named parts of a graph that only one version has, or that differ. An edge is named ``source>target``."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class DocumentDiff(msgspec.Struct, frozen=True):
    """The differences between two versions: JSON Patch operations from the first to the second, nodes and edges."""

    operations: list[dict[str, Any]]
    nodes: ChangedParts
    edges: ChangedParts


def compare_documents(a: dict[str, Any], b: dict[str, Any], graphs: tuple[GraphModel, GraphModel]) -> DocumentDiff:
    """Compare two documents and their graphs."""
    old, new = graphs
    edges = [{name: _without_order(edge) for name, edge in graph.edges.items()} for graph in graphs]
    return DocumentDiff(patch_operations(a, b), _parts(old.nodes, new.nodes), _parts(edges[0], edges[1]))


def _without_order(edge: Any) -> Any:
    """Return an edge without its place in the document, which changes when another one is added."""
    return msgspec.structs.replace(edge, ordinal=0)


def _parts(a: Mapping[str, Any], b: Mapping[str, Any]) -> ChangedParts:
    return ChangedParts(
        added=[name for name in b if name not in a],
        removed=[name for name in a if name not in b],
        changed=[name for name in a if name in b and a[name] != b[name]],
    )
