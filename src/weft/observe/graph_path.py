"""The path of a graph run: the edges it took and the values they read, the nodes it skipped, and its open joins."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

from weft.core import events as e
from weft.core.graph.model import Edge, GraphModel
from weft.core.graph.tokens import Frame, GraphState
from weft.core.values import preview_text
from weft.observe.diagnosis import (
    BranchStatus,
    JoinStanding,
    MissingBranch,
    NodeSkip,
    PathStep,
    SeenCondition,
    TakenEdge,
    without_traceback,
)
from weft.ports.store import StoredEvent

PATH_MAX = 200
"""The maximum length of a path. Only the last steps of a longer path are kept."""
SKIPS_MAX = 100
BRANCHES_MAX = 100

VersionGraphs = Callable[[str], Awaitable[GraphModel | None]]
"""Returns the graph of a version; None if it is not known any more."""


class GraphPath:
    """The path of one graph run, built from its events in order."""

    def __init__(self, graph: GraphModel) -> None:
        self._graph = graph
        self._steps: deque[PathStep] = deque(maxlen=PATH_MAX)
        self._dead_letters: dict[str, PathStep] = {}
        self._refused: dict[str, NodeSkip] = {}
        """For each node, the last reason why no edge led to it."""

    async def read(self, log: AsyncIterator[StoredEvent], versions: VersionGraphs, first: str) -> None:
        """Add all events of a log, each with the graph that the run followed then. ``first``: its first version."""
        now = self._graph
        self._graph = await versions(first) or now
        async for stored in log:
            event = e.decode(stored.body)
            self.add(event, stored.seq)
            if isinstance(event, e.RunPatched) and event.version != event.base:
                self._graph = await versions(event.version) or now
        self._graph = now

    def add(self, event: e.AnyEvent, seq: int) -> None:
        """Add the next event."""
        match event:
            case e.NodeRouted(node=node, token=token, caught=caught):
                edges = [_taken_edge(self._graph, event, taken) for taken in event.taken]
                self._steps.append(
                    PathStep(kind="routed", seq=seq, node=node, token=token, edges=edges, caught=bool(caught))
                )
                self._note_refusals(event)
            case e.NodeFailed(node=node, token=token, failure=failure):
                self._steps.append(
                    PathStep(kind="failed", seq=seq, node=node, token=token, failure=without_traceback(failure))
                )
            case e.FailureRaised(node=node, token=token, failure=failure):
                step = PathStep(kind="dead_letter", seq=seq, node=node, token=token, failure=without_traceback(failure))
                self._dead_letters[token] = step
                self._steps.append(step)
            case e.RunRetried(tokens=tokens):
                for token in tokens:
                    if token in self._dead_letters:
                        self._dead_letters.pop(token).became = "retried"
                self._steps.append(PathStep(kind="retried", seq=seq))
            case e.LetterDiscarded(token=token):
                if token in self._dead_letters:
                    self._dead_letters.pop(token).became = "discarded"

    def steps(self) -> list[PathStep]:
        """Return the last steps of the path."""
        return list(self._steps)

    def skips(self, state: GraphState) -> list[NodeSkip]:
        """Return the nodes that have not run, with the reason."""
        occupied = {token.node for token in state.tokens.values()}
        skips = []
        for node in self._graph.nodes.values():
            if state.executed.get(node.id) or node.id in occupied:
                continue
            sources = list(dict.fromkeys(self._graph.edges[name].source for name in node.incoming))
            idle = [source for source in sources if source and not state.executed.get(source)]
            skip = NodeSkip(node=node.id, why="sources" if idle else "nothing", sources=idle)
            skips.append(self._refused.get(node.id, skip))
        return skips[:SKIPS_MAX]

    def _note_refusals(self, event: e.NodeRouted) -> None:
        taken = {one.edge for one in event.taken}
        verdicts = {verdict.edge: verdict for verdict in event.verdicts}
        node = self._graph.nodes.get(event.node)
        for name in [name for tier in node.tiers for name in tier] if node is not None else []:
            if name not in taken:
                edge = self._graph.edges[name]
                self._refused[edge.to] = _skipped_edge(edge, event, verdicts.get(name))


def _skipped_edge(edge: Edge, event: e.NodeRouted, verdict: e.EdgeVerdict | None) -> NodeSkip:
    if edge.errors is not None and not event.caught:
        return NodeSkip(node=edge.to, why="no_failure", at=event.node)
    if verdict is None:
        return NodeSkip(node=edge.to, why="another_edge", at=event.node)
    condition, catches = _conditions(edge, verdict)
    return NodeSkip(node=edge.to, why="condition", at=event.node, condition=condition, catches=catches)


def _taken_edge(graph: GraphModel, event: e.NodeRouted, taken: e.Taken) -> TakenEdge:
    branches = len(taken.items) if taken.items is not None else None
    edge = graph.edges.get(taken.edge)
    if edge is None:  # of a version that is not known any more: its name says where it led
        to = taken.edge.partition(">")[2].partition("#")[0]
        return TakenEdge(edge=taken.edge, to=to, branches=branches)
    verdict = next((one for one in event.verdicts if one.edge == taken.edge), None)
    condition, catches = _conditions(edge, verdict)
    return TakenEdge(
        edge=taken.edge,
        to=edge.to,
        branches=branches,
        is_back=edge.kind == "back",
        condition=condition,
        catches=catches,
    )


def _conditions(edge: Edge, verdict: e.EdgeVerdict | None) -> tuple[SeenCondition | None, list[str] | None]:
    """Return the condition of an edge, or the errors that it catches."""
    if edge.when is not None:
        return SeenCondition(_condition_text(edge.when.source), verdict.seen if verdict is not None else {}), None
    return None, list(edge.errors) if edge.errors is not None else None


def _condition_text(source: Any) -> str:
    return source if isinstance(source, str) else preview_text(source, chars_max=120)


def joins_of(graph: GraphModel, state: GraphState) -> list[JoinStanding]:
    """Return the joins that have not fired."""
    return [*_fan_ins(graph, state), *_slots(graph, state)]


def _fan_ins(graph: GraphModel, state: GraphState) -> Iterator[JoinStanding]:
    for frame in state.frames.values():
        if not frame.fan_in or frame.fired:
            continue
        fan_in = graph.nodes[frame.fan_in].fan_in
        missing = _missing_branches(state, frame)
        yield JoinStanding(
            node=frame.fan_in,
            frame=frame.id,
            arrived=len(frame.arrived),
            total=frame.total,
            need=fan_in.need.of(frame.total) if fan_in is not None else frame.total,
            missing=[
                MissingBranch(index, _node_of_branch(state, frame, index), status)
                for status, indexes in missing.items()
                for index in indexes[:BRANCHES_MAX]
            ],
            missing_counts={status: len(indexes) for status, indexes in missing.items() if indexes},
        )


def _missing_branches(state: GraphState, frame: Frame) -> dict[BranchStatus, list[int]]:
    """Return the branches that have not arrived. After the end of the run, those that failed earlier are included."""
    open_ = [index for index, branch in frame.branches.items() if branch.status == "open"]
    if not state.over:
        return {"open": open_}
    failing = {index for index in open_ if _is_failing(state, frame.branches[index].members)}
    return {"failed": sorted({*frame.failed, *failing}), "stopped": sorted(set(open_) - failing)}


def _is_failing(state: GraphState, members: Iterable[str]) -> bool:
    return any(state.tokens[member].mode == "failing" for member in members)


def _node_of_branch(state: GraphState, frame: Frame, index: int) -> str:
    """Return the node at which a branch is or was last; empty if it no longer has a token."""
    branch = frame.branches[index]
    tokens = branch.kept.tokens if branch.kept is not None else [state.tokens[member] for member in branch.members]
    failing = [token for token in tokens if token.mode == "failing"]
    return next((token.node for token in (*failing, *tokens)), "")


def _slots(graph: GraphModel, state: GraphState) -> Iterator[JoinStanding]:
    for slot in state.slots.values():
        node = graph.nodes[slot.node]
        missing = [graph.edges[name].source for name in node.incoming if not slot.items.get(name)]
        if node.join == "edges" and missing:
            yield JoinStanding(node=slot.node, sources=list(dict.fromkeys(missing)))
