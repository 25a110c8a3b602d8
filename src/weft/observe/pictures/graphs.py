"""Draw a compiled graph, with the state of a run if there is one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from weft.core.events import AnyEvent, NodeRouted
from weft.core.graph.model import START, Edge, GraphModel, Node, PassWork
from weft.core.graph.tokens import GraphState
from weft.observe.pictures.labels import details, edge_label, node_label, short
from weft.observe.pictures.model import Arrow, ArrowKind, Box, Picture, Shape
from weft.observe.pictures.node_states import NodeStates


def picture_of_graph(graph: GraphModel, state: GraphState | None = None, taken: Collection[str] = ()) -> Picture:
    """Return the picture of a graph. With a state, it also shows what the run has done and where its tokens are.

    A state does not record which edges were taken; ``taken`` names them (see ``edges_taken``). Without it, only the
    edges that live tokens arrived by are marked.
    """
    if state is None:
        boxes = [_start_box(graph), *(_box(node) for node in graph.nodes.values())]
        return Picture(
            graph.name, tuple(boxes), tuple(_arrow(graph, edge, taken=False) for edge in graph.edges.values())
        )
    edges = {*taken, *(token.edge for token in state.tokens.values() if token.edge)}
    if state.begun:
        edges |= set(graph.start)
    states = NodeStates(graph, state, edges)
    return Picture(
        graph.name,
        (_start_box(graph, state), *(_box(node, states) for node in graph.nodes.values())),
        tuple(_arrow(graph, edge, taken=edge.name in edges) for edge in graph.edges.values()),
        f"{state.run_id} · {state.status.replace('_', ' ')}" if state.run_id else state.status.replace("_", " "),
    )


def edges_taken(log: Iterable[AnyEvent]) -> set[str]:
    """Return the edges that tokens took, from the log of a run."""
    return {taken.edge for event in log if isinstance(event, NodeRouted) for taken in event.taken}


def _start_box(graph: GraphModel, state: GraphState | None = None) -> Box:
    begun = state is not None and state.begun
    tip = f"start of {graph.name}"
    return Box(START, shape="start", mark="done" if begun else "idle", times=1 if begun else 0, tip=tip)


def _box(node: Node, states: NodeStates | None = None) -> Box:
    box = Box(node.id, node.id, short(node_label(node)), _shape(node), tip="\n".join(details(node)))
    return box if states is None else states.mark_box(box, node)


def _shape(node: Node) -> Shape:
    if node.join != "plain":
        return "join"
    if node.terminal:
        return "end"
    is_choice = isinstance(node.work, PassWork) and len(node.tiers) > 1
    return "choice" if is_choice else "plain"


def _arrow(graph: GraphModel, edge: Edge, *, taken: bool) -> Arrow:
    label = edge_label(graph, edge)
    return Arrow(edge.source, edge.to, short(label), _kind(edge), taken, tip=label)


def _kind(edge: Edge) -> ArrowKind:
    return "error" if edge.kind == "main" and edge.mentions_error else edge.kind
