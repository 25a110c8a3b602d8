"""Check an open graph run: what its live and reachable nodes name must exist in this process and take these inputs."""

from __future__ import annotations

from collections.abc import Iterable

from weft.core.graph.machine import GraphMachine
from weft.core.graph.model import GraphModel, TypeWork
from weft.observe.live_finding import LiveFinding, LiveRun, misfits
from weft.steps.node_types import node_types

MISSING = frozenset({"graph.unknown_step", "graph.unknown_workflow"})


async def check_graph(run: LiveRun, machine: GraphMachine) -> LiveFinding:
    """Return what this process lacks for the rest of a graph run."""
    graph = machine.graph
    # A host takes over graphs of others only if it has all of their steps, also those behind the run.
    is_own = run.row.workflow in run.code.startable()
    nodes = reachable(graph, {token.node for token in machine.state.tokens.values()}) if is_own else set(graph.nodes)
    findings = sorted(_findings(run, graph, nodes), key=lambda found: found.verdict != "not hosted")
    return findings[0] if findings else await _misfit(run, machine)


def reachable(graph: GraphModel, live: Iterable[str]) -> set[str]:
    """Return these nodes and all that edges lead to from there."""
    after: dict[str, list[str]] = {}
    for edge in graph.edges.values():
        after.setdefault(edge.source, []).append(edge.to)
    found: set[str] = set()
    left = list(live)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += after.get(node, ())
    return found


def _findings(run: LiveRun, graph: GraphModel, nodes: set[str]) -> Iterable[LiveFinding]:
    types = node_types()
    for name in sorted(nodes):
        work = graph.nodes[name].work
        if isinstance(work, TypeWork) and work.type not in types:
            yield LiveFinding(verdict="not hosted", place=name, message=f'no node type "{work.type}" is installed.')
    for finding in run.code.unknown_work(graph):
        node = max((name for name in graph.nodes if finding.path.startswith(f"nodes.{name}.")), key=len)
        if node in nodes:
            verdict = "not hosted" if finding.code in MISSING else "input"
            message = f"{finding.message} {finding.suggestion}".rstrip()
            yield LiveFinding(verdict=verdict, place=node, message=message)  # type: ignore[arg-type]


async def _misfit(run: LiveRun, machine: GraphMachine) -> LiveFinding:
    """Return the first task in flight whose step no longer takes its input."""
    state = machine.state
    for number, why in [one async for one in misfits(run, machine)]:
        token = state.tokens.get(state.by_task.get(number, ""))
        return LiveFinding(verdict="input", place=token.node if token is not None else "", message=why)
    return LiveFinding()
