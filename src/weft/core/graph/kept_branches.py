"""Keep failed branches that a join continues without, and restore them if a retry repeats them. Pure.

A join that needs only some of its branches drops those that fail. If too few arrive in the end and nothing handles
that failure, the run fails, and a retry repeats all of them. A branch cannot be repeated, and is not kept, if its work
was undone or if it had work in progress that could not be stopped. It is kept and not repeated if a patch has taken its
place away; an undo of the patch gives it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from weft.core.graph.model import GraphModel
from weft.core.graph.patch.static_scopes import StaticScopes, levels_of
from weft.core.graph.tokens import Branch, Frame, GraphState, Kept, Path, Token, scope_key
from weft.core.run.tasks import UNKNOWN

WAITING = "~"
"""The prefix of an entry in the queue of a frame that is a branch and not a token."""

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[Kept] = msgspec.json.Decoder(Kept)


def copy_branch(state: GraphState, frame: Frame, index: int) -> Kept:
    """Return a copy of everything in a branch."""
    branch = frame.branches[index]
    kept = Kept(live=branch.live, inner=list(branch.frames), around=list(branch.loops))
    kept.tokens = [state.tokens[token_id] for token_id in branch.members]
    _collect_branch(state, frame, index, kept)
    return _decoder.decode(_encode(kept))


def _collect_branch(state: GraphState, frame: Frame, index: int, kept: Kept) -> None:
    branch = frame.branches[index]
    scopes = [f"f{frame.id}.{index}"]
    for loop_id in branch.loops:
        kept.loops.append(state.loops[loop_id])
        scopes.append(f"l{loop_id}")
    for scope in scopes:
        for key in state.places.get(scope, ()):
            kept.slots[key] = state.slots[key]
    for inner in _unfired_frames(state, branch):
        kept.frames.append(inner)
        for n in inner.branches:
            _collect_branch(state, inner, n, kept)


def _unfired_frames(state: GraphState, branch: Branch) -> list[Frame]:
    frames = (state.frames.get(frame_id) for frame_id in branch.frames)
    return [frame for frame in frames if frame is not None and not frame.fired]


def restore_branch(state: GraphState, frame: Frame, index: int) -> list[Token]:
    """Reopen a kept branch and return its tokens. Work that was in progress starts again."""
    branch = frame.branches[index]
    branch.status = "open"
    frame.settled -= 1
    del frame.failed[index]
    kept, branch.kept = branch.kept, None
    assert kept is not None
    for inner in kept.frames:
        inner.timer = 0
        state.frames[inner.id] = inner
    for run in kept.loops:
        state.loops[run.id] = run
    for key, slot in kept.slots.items():
        slot.timer = 0
        state.slots[key] = slot
        state.places.setdefault(scope_key(slot.path), {})[key] = True
    branch.live = kept.live
    branch.frames = {frame_id: True for frame_id in kept.inner if frame_id in state.frames}
    branch.loops = dict.fromkeys(kept.around, True)
    waiting = sum(bool(inner.fan_in) for inner in kept.frames)
    _count_kept_tokens(state, frame.path, kept.tokens, waiting)
    for token in kept.tokens:
        state.tokens[token.id] = token
        branch.members[token.id] = True
        if token.mode == "working":
            token.mode, token.task = "ready", 0
    return kept.tokens


def _count_kept_tokens(state: GraphState, path: Path, tokens: list[Token], frames: int) -> None:
    """Count the tokens of a restored branch in the scopes around it."""
    for seg in path:
        if seg.kind == "l":
            state.loops[seg.id].live += len(tokens) + frames
        elif seg.id in state.frames:
            outer = state.frames[seg.id].branches[seg.n]
            outer.live += len(tokens) + frames
            outer.members.update((token.id, True) for token in tokens)


def kept_tokens(graph: GraphModel, state: GraphState) -> list[str]:
    """Return the failed tokens that a retry repeats: those that ended the run, and those of kept branches."""
    places = _KeptPlaces(graph, state)
    here = [state.tokens[token_id] for token_id in state.letters if token_id in state.tokens]
    found = {token.id for token in here}
    todo = _frames_passed_by_failures(state.frames, here)
    while todo:
        for branch in todo.pop().branches.values():
            if branch.kept is not None and places.has(branch, branch.kept):
                failing = [token for token in branch.kept.tokens if token.mode == "failing"]
                found.update(token.id for token in failing)
                todo += _frames_passed_by_failures({inner.id: inner for inner in branch.kept.frames}, failing)
    return [token_id for token_id in state.letters if token_id in found]


def _frames_passed_by_failures(frames: Mapping[str, Frame], tokens: Iterable[Token]) -> list[Frame]:
    """Return the frames that the failures of these tokens passed without being handled."""
    ids = {seg.id: True for token in tokens for seg in token.path if seg.kind == "f"}
    ids.update((token.frame, True) for token in tokens if token.frame)
    return [frames[frame_id] for frame_id in ids if frame_id in frames and not frames[frame_id].fired]


def restore_failed(graph: GraphModel, state: GraphState, asked: Sequence[str]) -> set[str]:
    """Reopen kept branches whose failure was not handled in the end. Returns the frames that have such branches."""
    mended: set[str] = set()
    places = _KeptPlaces(graph, state)
    todo = _frames_passed_by_failures(
        state.frames, [state.tokens[token_id] for token_id in asked if token_id in state.tokens]
    )
    while todo:
        frame = todo.pop()
        for index in list(frame.failed):
            kept = frame.branches[index].kept
            if kept is None or any(_is_unknown(token) and token.id not in asked for token in kept.tokens):
                continue
            if not places.has(frame.branches[index], kept):
                continue
            mended.add(frame.id)
            tokens = restore_branch(state, frame, index)
            _queue_if_full(graph, frame, index)
            todo += _frames_passed_by_failures(state.frames, [token for token in tokens if token.mode == "failing"])
    return mended


class _KeptPlaces:
    """Says whether kept branches have a place in the graph, which a patch may have changed."""

    def __init__(self, graph: GraphModel, state: GraphState) -> None:
        self._graph = graph
        self._is_patched = bool(state.revisions)
        self._scopes: StaticScopes | None = None
        self._open = GraphState(uid="", frames=dict(state.frames), loops=dict(state.loops))
        todo = list(state.frames.values()) if self._is_patched else []
        while todo:
            for branch in todo.pop().branches.values():
                if branch.kept is not None:
                    self._open.frames.update((inner.id, inner) for inner in branch.kept.frames)
                    self._open.loops.update((run.id, run) for run in branch.kept.loops)
                    todo += branch.kept.frames

    def has(self, branch: Branch, kept: Kept) -> bool:
        """Return whether everything in a branch could go on."""
        if not self._is_patched:
            return True
        nodes = self._graph.nodes
        return (
            self._opens(branch)
            and all(self._has_token(token) for token in kept.tokens)
            and all(run.loop in self._graph.loops for run in kept.loops)
            and all(self._has_frame(inner) for inner in kept.frames)
            and all(slot.node in nodes for slot in kept.slots.values())
        )

    def _opens(self, branch: Branch) -> bool:
        edge = self._graph.edges.get(branch.edge)
        return edge is not None and edge.opens

    def _has_token(self, token: Token) -> bool:
        if token.node not in self._graph.nodes:
            return False
        scopes = self._scopes = self._scopes or StaticScopes(self._graph)
        comes = token.mode in ("joining", "parked", "queued")
        known = scopes.delivers[token.node] if comes else scopes.works[token.node]
        return levels_of(self._open, token.path, scopes) in known

    def _has_frame(self, frame: Frame) -> bool:
        node = self._graph.nodes.get(frame.opener)
        open_ones = (branch for branch in frame.branches.values() if branch.status == "open")
        return node is not None and (node.closed_by or "") == frame.fan_in and all(map(self._opens, open_ones))


def _is_unknown(token: Token) -> bool:
    return token.failure is not None and token.failure.code == UNKNOWN


def _queue_if_full(graph: GraphModel, frame: Frame, index: int) -> None:
    """Queue a restored branch if the width of its edge has no room for it."""
    ordinal = frame.branches[index].edge
    width = graph.edges[ordinal].width
    if not width:
        return
    queue = frame.queues.setdefault(ordinal, [])
    at_work = sum(b.status == "open" and b.edge == ordinal for b in frame.branches.values()) - len(queue)
    if at_work > width:
        queue.insert(sum(entry.startswith(WAITING) for entry in queue), f"{WAITING}{index}")


def waits_for_width(state: GraphState, token: Token) -> bool:
    """Return whether a token is in a restored branch that may not work yet."""
    for seg in token.path:
        frame = state.frames.get(seg.id) if seg.kind == "f" else None
        if frame is not None and frame.queues:
            queue = frame.queues.get(frame.branches[seg.n].edge, ())
            if f"{WAITING}{seg.n}" in queue:
                return True
    return False
