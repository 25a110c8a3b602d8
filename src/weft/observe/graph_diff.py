"""Compare two versions of a graph: operations on the document, and nodes and edges that are not the same. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.graph.differences import ChangedParts, compare_edges, compare_nodes
from weft.core.graph.model import GraphModel
from weft.documents.json_diff import patch_operations


class DocumentDiff(msgspec.Struct, frozen=True):
    """The differences between two versions: JSON Patch operations from the first to the second, nodes and edges."""

    operations: list[dict[str, Any]]
    nodes: ChangedParts
    edges: ChangedParts


def compare_documents(a: dict[str, Any], b: dict[str, Any], graphs: tuple[GraphModel, GraphModel]) -> DocumentDiff:
    """Compare two documents and their graphs."""
    return DocumentDiff(patch_operations(a, b), compare_nodes(*graphs), compare_edges(*graphs))
