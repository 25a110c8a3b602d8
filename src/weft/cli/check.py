"""Check whether runs of graphs can get stuck, and print the shortest example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from weft.authoring.unknown_work import unknown_work
from weft.cli.app_file import load_app
from weft.cli.output import SafeText, console, print_json
from weft.core.findings import Finding
from weft.core.graph.soundness import Flaw
from weft.core.graph.soundness.flaws import shorten_moves
from weft.core.plurals import pluralize
from weft.errors import UsageError
from weft.graphs.check import Checked, check_document, check_loaded
from weft.graphs.load import DocumentContext

OUTCOMES = {"sound": "green", "unsound": "bold red", "refused": "bold red", "unknown": "yellow"}
SEVERITIES = {"error": "red", "warning": "yellow"}


def check_documents(paths: Sequence[str], *, json: bool, context: DocumentContext | None = None) -> int:
    """Check graph documents and the graphs of apps (``app.py``). Returns the exit code: 1 if a graph has an error.

    Raises:
        NotFound: there is no such file.
        UsageError: the file has no graph.
    """
    checked = [(place, checked_graph) for path in paths for place, checked_graph in _check(path, context)]
    if json:
        print_json({"graphs": [_document(place, checked_graph) for place, checked_graph in checked]})
    else:
        out = console()
        for place, checked_graph in checked:
            _print(out, place, checked_graph)
    return 0 if all(checked_graph.ok for _, checked_graph in checked) else 1


def _check(path: str, context: DocumentContext | None) -> Iterator[tuple[str, Checked]]:
    place = path.partition(":")[0]
    if Path(place).suffix != ".py":
        yield path, check_document(path, context)
        return
    app = load_app(path, "weft check").app
    graphs = app.registered.graphs()
    if not graphs:
        raise UsageError(f"There is no graph in {path}.", hint='Register one: app.graph("leads.yaml")')
    for graph in graphs:
        checked = check_loaded(graph.loaded)
        unknown = unknown_work(graph.loaded.graph, app.registered)
        if unknown:
            checked = msgspec.structs.replace(checked, outcome="refused", findings=[*unknown, *checked.findings])
        yield path, checked


def _print(out: Console, place: str, checked_graph: Checked) -> None:
    size = f"  {pluralize(checked_graph.nodes, 'node')}" if checked_graph.nodes else ""
    outcome = SafeText(checked_graph.outcome, style=OUTCOMES[checked_graph.outcome])
    out.print(SafeText.assemble((place, "bold"), f"  {checked_graph.name}{size}  " if size else "  ", outcome))
    for finding, flaw in _pair_with_flaws(checked_graph):
        where = f"{finding.line} " if finding.line else ""
        head = SafeText.assemble("  ", (finding.severity, SEVERITIES[finding.severity]), f"  {where}{finding.path}: ")
        head.append(flaw.message if flaw is not None else finding.message)
        out.print(head)
        for move in shorten_moves(flaw.moves) if flaw is not None else ():
            out.print(SafeText(f"           {move}", style="dim"))
        if finding.suggestion:
            out.print(SafeText(f"         {finding.suggestion}"))


def _pair_with_flaws(checked_graph: Checked) -> Iterator[tuple[Finding, Flaw | None]]:
    """Pair each finding with the flaw that it describes, if any."""
    flaws = {(f"graph.{flaw.code}", flaw.finding().path): flaw for flaw in checked_graph.flaws}
    for finding in checked_graph.findings:
        yield finding, flaws.get((finding.code, finding.path))


def _document(place: str, checked_graph: Checked) -> dict[str, Any]:
    return {
        "file": place,
        "name": checked_graph.name,
        "outcome": checked_graph.outcome,
        "nodes": checked_graph.nodes,
        "positions": checked_graph.positions,
        "findings": [
            {
                **msgspec.to_builtins(finding),
                "severity": finding.severity,
                "message": flaw.message if flaw is not None else finding.message,
                "moves": flaw.moves if flaw is not None else [],
            }
            for finding, flaw in _pair_with_flaws(checked_graph)
        ],
    }
