"""Check whether runs of graphs can get stuck, and print the shortest example."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from weft.authoring.app import App
from weft.authoring.registrations import Registrations
from weft.authoring.unknown_work import unknown_work
from weft.cli.app_file import load_app
from weft.cli.output import SafeText, console, print_json
from weft.core.findings import Finding
from weft.core.graph.model import GraphModel
from weft.core.graph.soundness import Flaw
from weft.core.graph.soundness.flaws import shorten_moves
from weft.core.plurals import pluralize
from weft.errors import UsageError
from weft.graphs.check import Checked, check_document, check_loaded

OUTCOMES = {"sound": "green", "unsound": "bold red", "refused": "bold red", "unknown": "yellow"}
SEVERITIES = {"error": "red", "warning": "yellow"}


def check_documents(paths: Sequence[str], *, app: str | None = None, json: bool) -> int:
    """Check graph documents and the graphs of apps (``app.py``). Returns the exit code: 1 if a graph has an error.

    ``app`` is the app that has the steps and workflows of the documents. Without it, they are not looked for.

    Raises:
        NotFound: there is no such file.
        UsageError: the file has no graph.
    """
    loaded = load_app(app, "weft check").app if app is not None else None
    checked = [(place, checked_graph) for path in paths for place, checked_graph in _check_file(path, loaded)]
    if json:
        print_json({"graphs": [_check_document(place, checked_graph) for place, checked_graph in checked]})
    else:
        out = console()
        for place, checked_graph in checked:
            _print_checked_graph(out, place, checked_graph)
    return 0 if all(checked_graph.ok for _, checked_graph in checked) else 1


def _check_file(path: str, app: App | None) -> Iterator[tuple[str, Checked]]:
    if Path(path.partition(":")[0]).suffix != ".py":
        if app is None:
            yield path, check_document(path)
        else:
            registered = app.registered
            yield path, check_document(path, registered.document_context(), partial(_missing, registered=registered))
        return
    registered = load_app(path, "weft check").app.registered
    graphs, agents = registered.graphs(), list(_checked_agents(registered))
    if not graphs and not agents:
        raise UsageError(f"There is no graph and no agent in {path}.", hint='Register one: app.graph("leads.yaml")')
    for graph in graphs:
        yield path, check_loaded(graph.loaded, unknown=partial(_missing, registered=registered))
    for checked_agent in agents:
        yield path, checked_agent


def _checked_agents(registered: Registrations) -> Iterator[Checked]:
    if "weft.authoring.agents.agent" not in sys.modules:
        return  # the program declares no agents
    from weft.authoring.agents.check import agent_findings, registered_agents

    for agent in registered_agents(registered):
        findings = agent_findings(agent, registered)
        refused = any(finding.severity == "error" for finding in findings)
        yield Checked(agent.name, "refused" if refused else "sound", findings, [])


def _missing(graph: GraphModel, registered: Registrations) -> list[Finding]:
    """Return what is not registered, and what the policy of the app denies. Raises BadPolicy."""
    found = unknown_work(graph, registered)
    rules = registered.policy.read()
    if rules is None:
        return found
    from weft.agents.policy.graph_work import policy_findings

    return [*found, *policy_findings(graph, rules)]


def _print_checked_graph(out: Console, place: str, checked_graph: Checked) -> None:
    size = pluralize(checked_graph.nodes, "node") if checked_graph.nodes else ""
    outcome = SafeText(checked_graph.outcome, style=OUTCOMES[checked_graph.outcome])
    words = [word for word in (checked_graph.name, size) if word]
    out.print(SafeText.assemble((place, "bold"), "  ", *(f"{word}  " for word in words), outcome))
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


def _check_document(place: str, checked_graph: Checked) -> dict[str, Any]:
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
