"""Check an open graph run: what its live and reachable nodes name must exist in this process and take these inputs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from weft.core.graph.machine import GraphMachine
from weft.core.graph.model import GraphModel, TypeWork
from weft.core.run.patch_plan import PatchRefusal
from weft.observe.live_finding import LiveFinding, LiveRun, input_misfits, refused_change
from weft.steps.node_types import node_types

MISSING = frozenset({"graph.unknown_step", "graph.unknown_workflow"})


async def check_graph(run: LiveRun, machine: GraphMachine) -> LiveFinding:
    """Return what this process lacks for the rest of a graph run, or why a change of it is refused."""
    graph = machine.graph
    if run.change.patch:
        plan = await run.dry_run(run.change.patch)
        if plan.refusals:
            return _refused_change(plan.refusals[0], graph)
        changed = await run.service.reader.version(run.row.workflow, plan.version)
        assert changed is not None, "the dry run has read it"
        graph = changed.graph
    # A host takes over graphs of others only if it has all of their steps, also those behind the run.
    is_own = run.row.workflow in run.code.startable()
    live = {token.node for token in machine.state.tokens.values()} & set(graph.nodes)
    nodes = reachable(graph, live) if is_own else set(graph.nodes)
    findings = sorted(_findings(run, graph, nodes), key=lambda found: found.verdict != "not hosted")
    return findings[0] if findings else await _first_misfit(run, machine)


def _refused_change(refusal: PatchRefusal, graph: GraphModel) -> LiveFinding:
    """Return the finding about a refused change. Tokens of many runs at one node are one group."""
    found = refused_change(refusal)
    node = found.place.rpartition("/")[0]
    return msgspec.structs.replace(found, place=node) if node in graph.nodes else found


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
            yield LiveFinding(verdict=verdict, place=node, message=message)


async def _first_misfit(run: LiveRun, machine: GraphMachine) -> LiveFinding:
    """Return the first task in flight whose step no longer takes its input."""
    state = machine.state
    for number, why in [one async for one in input_misfits(run, machine)]:
        token = state.tokens.get(state.by_task.get(number, ""))
        return LiveFinding(verdict="input", place=token.node if token is not None else "", message=why)
    return LiveFinding()
