"""What a graph says about the ways of its tokens before any of them runs: worked out once, for all runs. Pure.

Most nodes have one way on, without a condition. Their tokens are routed by what is written here; only where the answer
depends on a run are expressions evaluated.
"""

from __future__ import annotations

from msgspec import Raw

from weft.core.events import Taken
from weft.core.graph.model import (
    AskWork,
    Edge,
    Graph,
    HttpWork,
    Node,
    ReceiveWork,
    ScriptWork,
    StepWork,
    TypeWork,
)

HOPS_MAX = 100_000
TOKENS_MAX = 100_000
FAN_OUT_MAX = 20_000


class Straight:
    """The only way on from a node, the same in every run. ``edge`` None: a token ends there."""

    __slots__ = ("edge", "taken")

    def __init__(self, edge: Edge | None) -> None:
        self.edge = edge
        self.taken = [Taken(edge.name)] if edge is not None else []


class Ways:
    """The ways of one graph."""

    __slots__ = ("fan_out_max", "fixed", "hops_max", "straight", "tasks", "tokens_max")

    def __init__(self, graph: Graph) -> None:
        limits = graph.limits
        self.hops_max = limits.hops or HOPS_MAX
        self.tokens_max = limits.tokens or TOKENS_MAX
        self.fan_out_max = limits.fan_out or FAN_OUT_MAX
        self.tasks = {edge.name: graph.nodes[edge.to] for edge in graph.edges.values() if _leads_to_task(graph, edge)}
        """By edge that changes no scope: the node behind it, where a token begins a task as soon as it arrives."""
        self.straight = {
            node.id: Straight(_only(graph, node)) for node in graph.nodes.values() if _is_straight(node, graph)
        }
        """By node: the way on, where nothing has to be evaluated to know it."""
        self.fixed: dict[str, Raw] = {}
        """By node: the input that is the same in every run, once it has been worked out."""


def _leads_to_task(graph: Graph, edge: Edge) -> bool:
    node = graph.nodes[edge.to]
    if not isinstance(node.work, StepWork | HttpWork | ScriptWork | TypeWork):
        return False
    return _keeps_scope(edge) and node.join == "plain" and node.fan_in is None and not node.heads and _is_single(node)


def _is_single(node: Node) -> bool:
    """Whether what arrives at a node waits for nothing and tells no other edge."""
    return len(node.incoming) <= 1 and not node.waits


def _keeps_scope(edge: Edge) -> bool:
    return edge.kind == "main" and edge.each is None and not (edge.opens or edge.exits or edge.copies)


def _is_straight(node: Node, graph: Graph) -> bool:
    if node.save or node.repeat is not None or node.remembered or node.opening or len(node.main) > 1:
        return False
    if isinstance(node.work, AskWork | ReceiveWork):
        return False
    return all(_is_free(graph.edges[name]) and _is_single(graph.nodes[graph.edges[name].to]) for name in node.main)


def _is_free(edge: Edge) -> bool:
    """Whether an edge is taken whatever a run holds."""
    return _keeps_scope(edge) and edge.when is None and edge.errors is None


def _only(graph: Graph, node: Node) -> Edge | None:
    return graph.edges[node.main[0]] if node.main else None
