"""Why a graph run went the way it went: the edges it took with the values it saw, what did not run, what joins lack."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from weft.core import events as e
from weft.core.counting import counted
from weft.core.graph.model import Edge, Graph
from weft.core.graph.tokens import Frame, GraphState
from weft.core.values import shown
from weft.ports.store import StoredEvent

DEAD_LETTER = ": a dead letter"
HOPS_TOLD_MAX = 200
NODES_TOLD_MAX = 100
BRANCHES_TOLD_MAX = 3


class Told(msgspec.Struct):
    """The way of a run in sentences, and for every node that did not run, why not."""

    path: list[str] = []
    hops: int = 0
    skipped: list[str] = []
    joins: list[str] = []


async def tell(graph: Graph, state: GraphState, log: AsyncIterator[StoredEvent]) -> Told:
    """Read the log once."""
    told = Told()
    refused: dict[str, str] = {}
    letters: dict[str, int] = {}
    async for stored in log:
        event = e.decode(stored.body)
        sentence = _sentence(graph, event)
        _note_letters(told, event, letters)
        if isinstance(event, e.NodeRouted):
            _note_refusals(graph, event, refused)
        if sentence:
            told.hops += 1
            told.path.append(sentence)
            if len(told.path) > HOPS_TOLD_MAX:
                del told.path[0]
    told.skipped = _not_run(graph, state, refused)[:NODES_TOLD_MAX]
    told.joins = [*_frames(graph, state), *_slots(graph, state)]
    return told


def _note_letters(told: Told, event: e.AnyEvent, letters: dict[str, int]) -> None:
    """Say of a dead letter what became of it. ``letters``: in which hop each of them was told of."""
    match event:
        case e.FailureRaised(token=token):
            letters[token] = told.hops
        case e.RunRetried(tokens=tokens):
            _end_letters(told, tokens, letters, "tried again since")
        case e.LetterDiscarded(token=token):
            _end_letters(told, [token], letters, "discarded since")


def _end_letters(told: Told, tokens: Iterable[str], letters: dict[str, int], became: str) -> None:
    for token in tokens:
        place = letters.pop(token, -1) - (told.hops - len(told.path))
        if 0 <= place < len(told.path):
            told.path[place] = f"{told.path[place].removesuffix(DEAD_LETTER)}, {became}"


def _sentence(graph: Graph, event: e.AnyEvent) -> str:
    match event:
        case e.NodeRouted():
            return _routed(graph, event)
        case e.NodeFailed(node=node, failure=failure):
            return f"{node} failed: {failure.message}"
        case e.FailureRaised(node=node, failure=failure):
            return f"no edge of {node} took its failure ({failure.type}: {failure.message}){DEAD_LETTER}"
        case e.RunRetried():
            return "the run was tried again"
    return ""


def _routed(graph: Graph, event: e.NodeRouted) -> str:
    verdicts = {verdict.edge: verdict for verdict in event.verdicts}
    ways = []
    for taken in event.taken:
        edge = graph.edges[taken.edge]
        way = edge.to
        if taken.items is not None:
            way += f" ({counted(len(taken.items), 'branch')})"
        if edge.kind == "back":
            way += " again"
        why = _why(edge, verdicts.get(taken.edge))
        ways.append(f"{way}{f' because {why}' if why else ''}")
    source = event.node or "the start"
    if not ways:
        return f"{source} ended here"
    return f"{source}{' failed' if event.caught else ''} → {', '.join(ways)}"


def _why(edge: Edge, verdict: e.Verdict | None) -> str:
    if edge.when is not None:
        return f"{_text(edge.when.source)}{_seen(verdict)}"
    if edge.errors is not None:
        return f"it catches {', '.join(edge.errors) or 'any error'}"
    return ""


def _seen(verdict: e.Verdict | None) -> str:
    if verdict is None or not verdict.seen:
        return ""
    return f" ({', '.join(f'{name} = {shown(value)}' for name, value in verdict.seen.items())})"


def _text(source: Any) -> str:
    return source if isinstance(source, str) else shown(source, chars_max=120)


def _note_refusals(graph: Graph, event: e.NodeRouted, refused: dict[str, str]) -> None:
    """The last reason why each node was not led to from here."""
    taken = {one.edge for one in event.taken}
    verdicts = {verdict.edge: verdict for verdict in event.verdicts}
    node = graph.nodes.get(event.node)
    for tier in node.tiers if node is not None else []:
        for name in tier:
            edge = graph.edges[name]
            if name in taken:
                continue
            verdict = verdicts.get(name)
            if edge.errors is not None and not event.caught:
                refused[edge.to] = f"{event.node} did not fail"
            elif verdict is None:
                refused[edge.to] = f"{event.node} took another way before"
            else:
                refused[edge.to] = f"at {event.node}, {_why(edge, verdict)} did not hold"


def _not_run(graph: Graph, state: GraphState, refused: dict[str, str]) -> list[str]:
    here = {token.node for token in state.tokens.values()}
    found = []
    for node in graph.nodes.values():
        if state.executed.get(node.id) or node.id in here:
            continue
        sources = list(dict.fromkeys(graph.edges[name].source for name in node.incoming))
        idle = [source for source in sources if source and not state.executed.get(source)]
        run = "did not run" if state.over else "has not run"
        why = refused.get(node.id) or (f"{' and '.join(idle)} {run}" if idle else "nothing led to it")
        found.append(f"{node.id} {run}: {why}")
    return found


def _frames(graph: Graph, state: GraphState) -> list[str]:
    found = []
    for frame in state.frames.values():
        if not frame.fan_in or frame.fired:
            continue
        fan_in = graph.nodes[frame.fan_in].fan_in
        need = fan_in.need.of(frame.total) if fan_in is not None else frame.total
        counted = f"{len(frame.arrived)} of {frame.total} branches"
        if state.over:
            found.append(f"{frame.fan_in} had {counted} and needed {need}{_lost(state, frame)}")
        else:
            there = [index for index, branch in frame.branches.items() if branch.status == "open"]
            found.append(
                f"{frame.fan_in} has {counted} and needs {need}; still on their way: {_few(state, frame, there)}"
            )
    return found


def _lost(state: GraphState, frame: Frame) -> str:
    """What became of the branches that had not arrived when the run ended."""
    failed: list[int] = list(frame.failed)
    stopped: list[int] = []
    for index, branch in frame.branches.items():
        if branch.status == "open":
            failing = any(state.tokens[member].mode == "failing" for member in branch.members)
            (failed if failing else stopped).append(index)
    told = [(failed, "failed"), (stopped, "stopped when the run ended")]
    return "".join(f"; {became}: {_few(state, frame, sorted(which))}" for which, became in told if which)


def _few(state: GraphState, frame: Frame, indexes: list[int]) -> str:
    """The first of these branches, each with the node that it is or was at."""
    found = []
    for index in indexes[:BRANCHES_TOLD_MAX]:
        branch = frame.branches[index]
        tokens = [state.tokens[member] for member in branch.members]
        if branch.kept is not None:
            tokens = branch.kept.tokens
        tokens.sort(key=lambda token: token.mode != "failing")
        found.append(f"branch {index}{f' at {tokens[0].node}' if tokens else ''}")
    more = len(indexes) - len(found)
    return f"{', '.join(found)}{f' and {more} more' if more else ''}"


def _slots(graph: Graph, state: GraphState) -> list[str]:
    found = []
    for slot in state.slots.values():
        node = graph.nodes[slot.node]
        lacks = [graph.edges[name].source for name in node.incoming if not slot.items.get(name)]
        if node.join == "edges" and lacks:
            waits = "had nothing from" if state.over else "waits for"
            found.append(f"{slot.node} {waits} {', '.join(dict.fromkeys(lacks))}")
    return found
