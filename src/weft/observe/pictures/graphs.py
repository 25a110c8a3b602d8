"""Draw a compiled graph, with the state of a run if there is one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from weft.core.events import AnyEvent, NodeRouted
from weft.core.graph.model import START, Edge, GraphModel, Node, PassWork
from weft.core.graph.tokens import GraphState
from weft.observe.pictures.graph_groups import GraphGroups
from weft.observe.pictures.labels import details, edge_label, node_label, short
from weft.observe.pictures.model import Arrow, ArrowKind, Box, Picture, Shape
from weft.observe.pictures.node_states import NodeStates

NONE_TAKEN: Mapping[str, int] = {}


def picture_of_graph(
    graph: GraphModel, state: GraphState | None = None, taken: Mapping[str, int] = NONE_TAKEN
) -> Picture:
    """Return the picture of a graph. With a state, it also shows what the run has done and where its tokens are.

    A state does not record which edges were taken; ``taken`` counts them (see ``edges_taken``). Without it, only the
    edges that live tokens arrived by are marked.
    """
    groups = GraphGroups(graph)
    if state is None:
        return Picture(
            graph.name,
            (_start_box(graph), *(_box(node, groups) for node in graph.nodes.values())),
            tuple(_arrow(graph, edge) for edge in graph.edges.values()),
            groups=groups.all(),
        )
    arrived = [token.edge for token in state.tokens.values() if token.edge]
    edges = {**dict.fromkeys([*arrived, *(graph.start if state.begun else ())], 1), **taken}
    states = NodeStates(graph, state, edges)
    return Picture(
        graph.name,
        (_start_box(graph, state), *(states.mark_box(_box(node, groups), node) for node in graph.nodes.values())),
        tuple(_arrow(graph, edge, edges.get(edge.name, 0)) for edge in graph.edges.values()),
        f"{state.run_id} · {state.status.replace('_', ' ')}" if state.run_id else state.status.replace("_", " "),
        groups.all(),
    )


def edges_taken(log: Iterable[AnyEvent]) -> Counter[str]:
    """Return how often tokens took each edge, from the log of a run."""
    return Counter(taken.edge for event in log if isinstance(event, NodeRouted) for taken in event.taken)


def _start_box(graph: GraphModel, state: GraphState | None = None) -> Box:
    begun = state is not None and state.begun
    tip = f"start of {graph.name}"
    return Box(START, shape="start", mark="done" if begun else "idle", times=1 if begun else 0, tip=tip)


def _box(node: Node, groups: GraphGroups) -> Box:
    return Box(
        node.id,
        node.id,
        short(node_label(node)),
        _shape(node),
        tip="\n".join(details(node)),
        kind=node.work.__struct_config__.tag,  # type: ignore[arg-type]  # every kind of work has a tag
        group=groups.of(node.id),
    )


def _shape(node: Node) -> Shape:
    if node.join != "plain":
        return "join"
    if node.terminal:
        return "end"
    is_choice = isinstance(node.work, PassWork) and len(node.tiers) > 1
    return "choice" if is_choice else "plain"


def _arrow(graph: GraphModel, edge: Edge, times: int = 0) -> Arrow:
    label = edge_label(graph, edge)
    return Arrow(edge.source, edge.to, short(label), _kind(edge), times > 0, label, times, edge.name)


def _kind(edge: Edge) -> ArrowKind:
    return "error" if edge.kind == "main" and edge.mentions_error else edge.kind
