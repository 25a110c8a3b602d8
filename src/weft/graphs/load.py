"""Load a graph: compile a file, a text or a dict, or report all of its problems."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from weft.core.findings import Finding
from weft.core.graph.compile import compile_graph
from weft.core.graph.language import ExpressionLanguage
from weft.core.graph.model import GraphModel, content_hash
from weft.documents.source import DocumentSource, read_dict, read_file, read_source
from weft.documents.spellings import blob_exists, inline_blobs
from weft.graphs.fold import GRAPH_DOCUMENT, Rules, fold_document
from weft.graphs.language import Conditions, Resolve
from weft.graphs.work import NodeTypes


class LoadedGraph(msgspec.Struct, frozen=True):
    """A compiled graph. ``source`` is its document as JSON data, and ``hash`` identifies its content.

    ``text`` is the document as its author wrote it, comments included; empty if it was a dict.
    """

    graph: GraphModel
    hash: str
    source: dict[str, Any]
    warnings: list[Finding]
    text: str = ""


@dataclass(slots=True)
class DocumentContext:
    """What a document may use: registered node types, blobs, and the language of its expressions."""

    types: NodeTypes = field(default_factory=dict)
    resolve: Resolve | None = None
    python: bool | None = None
    language: ExpressionLanguage | None = None

    def rules(self) -> Rules:
        resolve = self.resolve
        if resolve is None:
            return Rules(self.types)
        return Rules(
            self.types, lambda raw: inline_blobs(raw, resolve), lambda reference: blob_exists(reference, resolve)
        )

    def expressions(self) -> ExpressionLanguage:
        return self.language or Conditions(self.resolve, python=self.python)


def load_graph(source: str | Path | Mapping[str, Any], context: DocumentContext | None = None) -> LoadedGraph:
    """Load the graph in a file, or in a dict of the same shape.

    Raises:
        BadGraph: the document is not valid; ``context["findings"]`` lists all problems.
        NotFound: there is no such file.
    """
    with _gc_disabled():
        document = (
            read_dict(source, GRAPH_DOCUMENT)
            if isinstance(source, Mapping)
            else read_file(Path(source), GRAPH_DOCUMENT)
        )
        return _load_source(document, context or DocumentContext())


def parse_graph(text: str | bytes, file: str = "", context: DocumentContext | None = None) -> LoadedGraph:
    """Load the graph in a text. ``file`` is its name in findings.

    Raises:
        BadGraph: the document is not valid; ``context["findings"]`` lists all problems.
    """
    with _gc_disabled():
        return _load_source(read_source(text, file, GRAPH_DOCUMENT), context or DocumentContext())


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Disable the garbage collector, which would find no garbage here and take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _load_source(document: DocumentSource, context: DocumentContext) -> LoadedGraph:
    problems = GRAPH_DOCUMENT.new_problems()
    name = Path(document.file).stem or "graph"
    folded = fold_document(document.data, name, context.rules(), problems)
    graph = compile_graph(folded, context.expressions(), problems) if folded is not None else None
    findings = [document.finding(problem) for problem in problems.entries]
    if graph is None or problems.has_errors:
        # An empty document has no problems, because it has no values.
        findings = findings or [Finding("graph.no_nodes", "a graph needs at least one node.", file=document.file)]
        raise document.refusal(findings, name=folded.name if folded is not None else name)
    return LoadedGraph(graph, content_hash(graph), document.data, findings, document.written)
