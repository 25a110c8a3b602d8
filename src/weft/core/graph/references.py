"""Which steps and workflows a graph refers to. Pure."""

from __future__ import annotations

from weft.core.graph.model import Graph, StepWork, WorkflowWork


def referenced_steps(graph: Graph) -> dict[str, list[str]]:
    """Return the registered steps that the graph uses for work or undo, each with the nodes that use it."""
    found: dict[str, list[str]] = {}
    for node in graph.nodes.values():
        named = [node.work.step] if isinstance(node.work, StepWork) else []
        if node.undo is not None:
            named.append(node.undo.step)
        for step in dict.fromkeys(named):
            found.setdefault(step, []).append(node.id)
    return found


def referenced_workflows(graph: Graph) -> dict[str, list[str]]:
    """Return the workflows that the graph starts as children, each with the nodes that start it."""
    found: dict[str, list[str]] = {}
    for node in graph.nodes.values():
        if isinstance(node.work, WorkflowWork):
            found.setdefault(node.work.workflow, []).append(node.id)
    return found
