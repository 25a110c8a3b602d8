"""Check a graph from the present position of a run instead of from its start. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.core.events import NULL
from weft.core.graph.model import GraphModel
from weft.core.graph.soundness.play import Play
from weft.core.graph.soundness.position import Position, Trail
from weft.core.graph.soundness.reduction import ROUNDS_MAX, reduce_graph
from weft.core.graph.soundness.search import Search
from weft.core.graph.tokens import AT_WORK, GraphState, Token

WORK_MAX = 60_000
_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[GraphState] = msgspec.json.Decoder(GraphState)


def check_here(
    graph: GraphModel, state: GraphState, *, all_orders: bool
) -> tuple[Literal["sound", "unsound", "unknown"], list[str]]:
    """Return whether a run can get stuck from here, and the shortest path to a position in which it is."""
    rounds = max((seg.n for token in state.tokens.values() for seg in token.path if seg.kind == "l"), default=0)
    reduced = reduce_graph(graph, rounds=ROUNDS_MAX + rounds, exact=True)
    search = Search(Play(reduced, all_orders=all_orders), WORK_MAX)
    search.run(Position(_position_without_data(graph, state), {}, {}, Trail()))
    if search.stuck:
        shortest = min(search.stuck, key=lambda position: position.trail.length)
        return "unsound", shortest.trail.moves()
    return ("sound" if search.whole else "unknown"), []


def _position_without_data(graph: GraphModel, state: GraphState) -> GraphState:
    """Return the position of a run without data. Tokens at work may finish next."""
    bare = GraphState(
        uid="check",
        begun=True,
        tokens=state.tokens,
        frames=state.frames,
        loops=state.loops,
        slots=state.slots,
        places=state.places,
        made=state.made,
    )
    copied = _decoder.decode(_encode(bare))
    for token in copied.tokens.values():
        _strip_token(token)
        if token.mode in AT_WORK:
            token.mode = "failing" if token.mode == "failing" else "ready"
            copied.agenda.append(token.id)
    for frame in copied.frames.values():
        frame.seen, frame.timer = {}, 0
        if frame.rule is not None:  # the nodes of the reduced graph merge nothing either
            frame.rule = msgspec.structs.replace(frame.rule, merge=None)
        for branch in frame.branches.values():
            branch.item = branch.result = NULL
            branch.writes = None
            branch.kept = None
    for slot in copied.slots.values():
        slot.timer = 0
    _fewer_branches(graph, copied)
    return copied


def _strip_token(token: Token) -> None:
    token.value = token.output = token.input = NULL
    token.seen, token.task, token.error = {}, 0, None


def _fewer_branches(graph: GraphModel, state: GraphState) -> None:
    """Let two alike branches of a frame stand for all, where all must arrive. Settled branches do not matter."""
    for frame in state.frames.values():
        fan_in = graph.nodes[frame.fan_in].fan_in if frame.fan_in else None
        if frame.fired or fan_in is None or fan_in.need.kind != "all":
            continue
        alike: dict[str, int] = {}
        for index, branch in list(frame.branches.items()):
            members = [state.tokens[name] for name in branch.members if name in state.tokens]
            simple = branch.status == "open" and not branch.frames and not branch.loops and len(members) == 1
            if not simple or members[0].mode not in ("ready", "queued"):
                continue
            key = f"{branch.edge}/{members[0].node}/{members[0].mode}"
            alike[key] = alike.get(key, 0) + 1
            if alike[key] > 2:
                _remove_branch(state, frame.id, index)


def _remove_branch(state: GraphState, frame_id: str, index: int) -> None:
    frame = state.frames[frame_id]
    branch = frame.branches.pop(index)
    frame.total -= 1
    for name in branch.members:
        token = state.tokens.pop(name)
        if name in state.agenda:
            state.agenda.remove(name)
        for queue in frame.queues.values():
            if name in queue:
                queue.remove(name)
        for seg in frame.path:
            if seg.kind == "l":
                state.loops[seg.id].live -= 1
            elif seg.id in state.frames:
                outer = state.frames[seg.id].branches[seg.n]
                outer.live -= 1
                outer.members.pop(token.id, None)
