"""Check a graph document: compile it, then search the positions that its runs can reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from weft.core.findings import Finding
from weft.core.graph.model import GraphModel
from weft.core.graph.soundness import Flaw, check_soundness
from weft.documents.source import item_id
from weft.documents.text import Text, UnreadableText, read_text
from weft.errors import BadGraph
from weft.graphs.fold import GRAPH_DOCUMENT
from weft.graphs.load import DocumentContext, LoadedGraph, load_graph

Outcome = Literal["refused", "sound", "unsound", "unknown"]
Unknown = Callable[[GraphModel], list[Finding]]


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


def nothing_unknown(_: GraphModel) -> list[Finding]:
    """Return no findings: nobody knows which steps and workflows there are."""
    return []


def check_document(
    source: str | Path | Mapping[str, Any], context: DocumentContext | None = None, unknown: Unknown = nothing_unknown
) -> Checked:
    """Check whether runs of the graph in a file or a dict can get stuck. ``refused`` means that it cannot run.

    ``unknown`` returns findings about steps and workflows that there are not.

    Raises:
        NotFound: there is no such file.
    """
    try:
        loaded = load_graph(source, context)
    except BadGraph as error:
        findings: Any = error.context["findings"]
        name = Path(source).name if isinstance(source, str | Path) else str(source.get("name", ""))
        return Checked(name, "refused", list(findings), [])
    return check_loaded(loaded, None if isinstance(source, Mapping) else Path(source), unknown)


def check_loaded(loaded: LoadedGraph, file: Path | None = None, unknown: Unknown = nothing_unknown) -> Checked:
    """Check whether runs of a compiled graph can get stuck. ``file`` contains its document."""
    graph = loaded.graph
    verdict = check_soundness(graph)
    # The search also reports every node that never runs.
    findings = [warning for warning in loaded.warnings if warning.code != "graph.unreachable"]
    missing, found = unknown(graph), verdict.findings()
    if file is not None:
        lines = _Lines(file)
        missing, found = (
            [msgspec.structs.replace(each, file=file.name, line=lines.of(each.path)) for each in some]
            for some in (missing, found)
        )
    return Checked(
        graph.name,
        "refused" if missing else verdict.outcome,
        [*missing, *findings, *found],
        verdict.flaws,
        len(graph.nodes),
        verdict.positions,
    )


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
            while name not in nodes and "." in name:
                name = name.rpartition(".")[0]  # a finding about a field of the node
            return self._text.line(("nodes", name))
        return self._text.line(("nodes", _node_index(nodes, name)))


def _node_index(nodes: Sequence[Any], name: str) -> int:
    """Return the index of a node in a list, or of the node that has a field of this path."""
    names = [item_id(node, GRAPH_DOCUMENT) for node in nodes]
    while name not in names and "." in name:
        name = name.rpartition(".")[0]
    return names.index(name) if name in names else len(nodes)
