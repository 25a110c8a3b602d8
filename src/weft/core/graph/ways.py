"""The parts of a graph's routing that are the same in every run, computed once. Pure.

Most nodes have a single edge without a condition, so their tokens are routed by these tables. Expressions are evaluated
only if the result depends on the run.
"""

from __future__ import annotations

from weft.core.events import Taken
from weft.core.graph.model import (
    AgentWork,
    AskWork,
    Edge,
    GraphModel,
    HttpWork,
    Node,
    PipelineWork,
    ReceiveWork,
    ScriptWork,
    StepWork,
    TypeWork,
)

HOPS_MAX = 100_000
TOKENS_MAX = 100_000
FAN_OUT_MAX = 20_000


class Straight:
    """The only edge of a node, the same in every run. If ``edge`` is None, a token ends there."""

    __slots__ = ("edge", "taken")

    def __init__(self, edge: Edge | None) -> None:
        self.edge = edge
        self.taken = [Taken(edge.name)] if edge is not None else []


class Ways:
    """The precomputed routing of one graph."""

    __slots__ = ("fan_out_max", "hops_max", "straight", "tasks", "tokens_max")

    def __init__(self, graph: GraphModel) -> None:
        limits = graph.limits
        self.hops_max = limits.hops or HOPS_MAX
        self.tokens_max = limits.tokens or TOKENS_MAX
        self.fan_out_max = limits.fan_out or FAN_OUT_MAX
        self.tasks = {edge.name: graph.nodes[edge.to] for edge in graph.edges.values() if _leads_to_task(graph, edge)}
        """Edges that do not change the scope and lead to a node where a token starts a task as soon as it arrives."""
        self.straight = {
            node.id: Straight(_only_edge(graph, node)) for node in graph.nodes.values() if _is_straight(node, graph)
        }
        """The edge of each node that can be routed without evaluating anything."""


def _leads_to_task(graph: GraphModel, edge: Edge) -> bool:
    node = graph.nodes[edge.to]
    if node.requires_approval or not isinstance(node.work, StepWork | HttpWork | ScriptWork | PipelineWork | TypeWork):
        return False
    return _keeps_scope(edge) and node.join == "plain" and node.fan_in is None and not node.heads and _is_single(node)


def _is_single(node: Node) -> bool:
    """Return whether a token that arrives at a node neither waits nor affects other edges."""
    return len(node.incoming) <= 1 and not node.waits


def _keeps_scope(edge: Edge) -> bool:
    return edge.kind == "main" and edge.each is None and not (edge.opens or edge.exits or edge.copies)


def _is_straight(node: Node, graph: GraphModel) -> bool:
    if node.save or node.repeat is not None or node.remembered or node.opening or len(node.main) > 1:
        return False
    if isinstance(node.work, AgentWork | AskWork | ReceiveWork):
        return False
    return all(_is_free(graph.edges[name]) and _is_single(graph.nodes[graph.edges[name].to]) for name in node.main)


def _is_free(edge: Edge) -> bool:
    """Return whether an edge is taken in every run."""
    return _keeps_scope(edge) and edge.when is None and edge.errors is None


def _only_edge(graph: GraphModel, node: Node) -> Edge | None:
    return graph.edges[node.main[0]] if node.main else None
