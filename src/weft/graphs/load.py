"""Load a graph: a file, text or a dict to a compiled graph, or everything that is wrong with it."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from weft.core import values
from weft.core.findings import At, Finding, Problem, Problems, refusal
from weft.core.graph.compile import compile_graph
from weft.core.graph.language import Language
from weft.core.graph.model import Graph, content_hash
from weft.errors import BadValue, LimitExceeded, NotFound
from weft.graphs.fold import Rules, fold_document
from weft.graphs.language import Conditions, Resolve
from weft.graphs.spelling import inlined, is_there
from weft.graphs.text import BYTES_MAX, Text, Unreadable, read_text
from weft.graphs.work import NodeTypes


class Loaded(msgspec.Struct, frozen=True):
    """A graph that compiled. `source`: the document as it was written, as JSON data; `hash` names the graph."""

    graph: Graph
    hash: str
    source: dict[str, Any]
    warnings: list[Finding]


@dataclass(slots=True)
class Surroundings:
    """What a document may refer to: registered node types, blobs, and the language of its expressions."""

    types: NodeTypes = field(default_factory=dict)
    resolve: Resolve | None = None
    python: bool | None = None
    language: Language | None = None

    def rules(self) -> Rules:
        resolve = self.resolve
        if resolve is None:
            return Rules(self.types)
        return Rules(self.types, lambda raw: inlined(raw, resolve), lambda reference: is_there(reference, resolve))

    def expressions(self) -> Language:
        return self.language or Conditions(self.resolve, python=self.python)


def load_graph(source: str | Path | Mapping[str, Any], surroundings: Surroundings | None = None) -> Loaded:
    """The graph in a file, or in a dict of the same shape.

    Raises:
        BadGraph: with all findings in `context["findings"]`.
        NotFound: there is no such file.
    """
    around = surroundings or Surroundings()
    if isinstance(source, Mapping):
        with _uncollected():
            return _load(_Document(_plain(source)), around)
    path = Path(source)
    try:
        raw = path.read_bytes()[: BYTES_MAX * 4 + 1]
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.", code="graph.no_file") from None
    return parse_graph(raw, path.name, around)


def parse_graph(text: str | bytes, file: str = "", surroundings: Surroundings | None = None) -> Loaded:
    """The graph in a text; `file` is what findings call it.

    Raises:
        BadGraph: with all findings in `context["findings"]`.
    """
    with _uncollected():
        return _load(_read(text, file), surroundings or Surroundings())


@contextmanager
def _uncollected() -> Iterator[None]:
    """A document becomes very many objects, hardly any of them garbage: looking for that is a third of the work."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(text: str | bytes, file: str) -> _Document:
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        return _Document(read_text(decoded), file)
    except UnicodeDecodeError:
        raise refusal([Finding("graph.yaml", "the file is not UTF-8.", file=file)], name=file) from None
    except Unreadable as error:
        finding = Finding(f"graph.{error.code}", error.message, line=error.line, file=file)
        raise refusal([finding], name=file) from None


class _Document:
    """A document with what is known about its places."""

    def __init__(self, text: Text, file: str = "") -> None:
        self.text = text
        self.data = text.data
        self.file = file
        self.name = Path(file).stem or "graph"

    def finding(self, problem: Problem) -> Finding:
        return Finding(
            problem.code,
            problem.message,
            self._path(problem.at),
            self.text.line(problem.at) if self.file else 0,
            self.file,
            problem.suggestion,
            problem.severity,
        )

    def _path(self, at: At) -> str:
        """A place for people: nodes by their names, also where they stand in a list."""
        text = ""
        for depth, key in enumerate(at):
            shown = self._node_name(key) if depth == 1 and at[0] == "nodes" and isinstance(key, int) else key
            if isinstance(shown, int):
                text += f"[{shown}]"
            else:
                text += f".{shown}" if text else shown
        return text

    def _node_name(self, index: int) -> str | int:
        node = self.data["nodes"][index]
        for key in ("id", "node_id", "ref"):
            if isinstance(node, dict) and isinstance(node.get(key), str):
                return str(node[key])
        return index


def _plain(source: Mapping[str, Any]) -> Text:
    """A dict from Python as JSON data, so that nothing in it changes or surprises later."""
    try:
        data = values.decode(values.encode_known(dict(source), what="the document holds"))
    except (BadValue, LimitExceeded) as error:
        code = "graph.too_deep" if isinstance(error, LimitExceeded) else "graph.not_json"
        finding = Finding(code, error.message, str(error.context.get("path", "")), suggestion=error.hint)
        raise refusal([finding], name="the document") from None
    return Text(data, None)


def _load(document: _Document, around: Surroundings) -> Loaded:
    problems = Problems()
    folded = fold_document(document.data, document.name, around.rules(), problems)
    graph = compile_graph(folded, around.expressions(), problems) if folded is not None else None
    findings = [document.finding(problem) for problem in problems.found]
    if graph is None or problems.refused:
        # An empty document has no place that could be wrong; that is what is wrong with it.
        findings = findings or [Finding("no_nodes", "a graph has at least one node.", file=document.file)]
        raise refusal(findings, name=document.file or (folded.name if folded is not None else document.name))
    return Loaded(graph, content_hash(graph), document.data, findings)
