"""Check a graph document: compile it, then search the positions that its runs can reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from weft.core.findings import Finding
from weft.core.graph.soundness import Flaw, check_soundness
from weft.documents.source import item_id
from weft.documents.text import Text, UnreadableText, read_text
from weft.errors import BadGraph
from weft.graphs.fold import GRAPH_DOCUMENT
from weft.graphs.load import DocumentContext, LoadedGraph, load_graph

Outcome = Literal["refused", "sound", "unsound", "unknown"]


class Checked(msgspec.Struct, frozen=True):
    """The result of a check. ``findings`` come from the compiler and the search, ``flaws`` only from the search."""

    name: str
    outcome: Outcome
    findings: list[Finding]
    flaws: list[Flaw]
    nodes: int = 0
    positions: int = 0

    @property
    def ok(self) -> bool:
        return self.outcome in ("sound", "unknown")


def check_document(source: str | Path | Mapping[str, Any], context: DocumentContext | None = None) -> Checked:
    """Check whether runs of the graph in a file or a dict can get stuck. ``refused`` means that it does not compile.

    Raises:
        NotFound: there is no such file.
    """
    try:
        loaded = load_graph(source, context)
    except BadGraph as error:
        findings: Any = error.context["findings"]
        name = Path(source).name if isinstance(source, str | Path) else str(source.get("name", ""))
        return Checked(name, "refused", list(findings), [])
    return check_loaded(loaded, None if isinstance(source, Mapping) else Path(source))


def check_loaded(loaded: LoadedGraph, file: Path | None = None) -> Checked:
    """Check whether runs of a compiled graph can get stuck. ``file`` contains its document."""
    verdict = check_soundness(loaded.graph)
    # The search also reports every node that never runs.
    findings = [warning for warning in loaded.warnings if warning.code != "graph.unreachable"]
    found = verdict.findings()
    if file is not None:
        lines = _Lines(file)
        found = [msgspec.structs.replace(each, file=file.name, line=lines.of(each.path)) for each in found]
    graph = loaded.graph
    return Checked(graph.name, verdict.outcome, [*findings, *found], verdict.flaws, len(graph.nodes), verdict.positions)


class _Lines:
    """The lines of the nodes of a document."""

    def __init__(self, file: Path) -> None:
        try:
            self._text = read_text(file.read_bytes().decode("utf-8-sig"))
        except (OSError, UnicodeDecodeError, UnreadableText):
            self._text = Text(None, None)

    def of(self, path: str) -> int:
        name = path.removeprefix("nodes.")
        nodes = self._text.data.get("nodes") if isinstance(self._text.data, dict) else None
        if not path or nodes is None:
            return 0
        if isinstance(nodes, dict):
            return self._text.line(("nodes", name))
        return self._text.line(("nodes", _index(nodes, name)))


def _index(nodes: Sequence[Any], name: str) -> int:
    """Return the index of a node in a list."""
    return next((index for index, node in enumerate(nodes) if item_id(node, GRAPH_DOCUMENT) == name), len(nodes))
