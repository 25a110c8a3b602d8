"""Small documents for tests, and what loading them gives."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.findings import Finding
from weft.core.graph.model import Edge, GraphModel
from weft.errors import BadGraph
from weft.graphs.load import DocumentContext, load_graph, parse_graph

Document = dict[str, Any]


def nodes(**given: Document) -> Document:
    """A document of these nodes; a node that says nothing else passes."""
    words = {"step", "http", "join", "fan_in", "wait", "ask", "workflow", "goal", "type", "agent", "script"}
    return {"nodes": {name: node if words & set(node) else {"pass": True, **node} for name, node in given.items()}}


def compiled(document: Document) -> GraphModel:
    return load_graph(document).graph


def refused(document: Document | str, context: DocumentContext | None = None) -> list[Finding]:
    """All that is wrong with a document."""
    with pytest.raises(BadGraph) as caught:
        if isinstance(document, str):
            parse_graph(document, "leads.yaml", context)
        else:
            load_graph(document, context)
    found: list[Finding] = caught.value.context["findings"]  # type: ignore[assignment]
    return [finding for finding in found if finding.severity == "error"]


def refusal_of(document: Document | str) -> BadGraph | None:
    """Why a document does not compile, if it does not."""
    try:
        parse_graph(document) if isinstance(document, str) else load_graph(document)
    except BadGraph as error:
        return error
    return None


def is_accepted(document: Document) -> bool:
    return refusal_of(document) is None


def is_accepted_or_explained(document: Document | str) -> bool:
    """Whether a document compiles, or is refused with something to repair."""
    error = refusal_of(document)
    return error is None or (bool(error.context["findings"]) and bool(str(error)))


def codes(document: Document | str) -> list[str]:
    """The codes of all that is wrong, without their first word."""
    return [finding.code.removeprefix("graph.") for finding in refused(document)]


def edge(graph: GraphModel, source: str, to: str, kind: str = "main") -> Edge:
    """The one edge between two nodes."""
    found = [each for each in graph.edges.values() if (each.source, each.to, each.kind) == (source, to, kind)]
    assert len(found) == 1, found
    return found[0]
