"""A position of the game: the state of a run without data, how it was reached, and a key to compare positions.

Two positions are equal if the same can happen from both. Names of tokens, frames and loops do not matter, nor which of
two equal branches is which, nor anything that has no influence any more. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import msgspec

from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import Frame, GraphState, LoopRun, Seg, Slot

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[GraphState] = msgspec.json.Decoder(GraphState)

At = tuple[Seg, ...]
"""A path that can be used as a key."""

Key = tuple[Any, ...]


@dataclass(slots=True, frozen=True)
class Trail:
    """The moves that led to a position, last first."""

    length: int = 0
    move: str = ""
    before: Trail | None = None

    def then(self, move: str) -> Trail:
        return Trail(self.length + 1, move, self)

    def moves(self) -> list[str]:
        found = []
        trail: Trail | None = self
        while trail is not None and trail.before is not None:
            found.append(trail.move)
            trail = trail.before
        return found[::-1]


@dataclass(slots=True)
class Position:
    """``entered``: how often tokens entered a node in one scope. ``focus``: the branch of each frame that works now."""

    state: GraphState
    entered: dict[tuple[str, At], int]
    focus: dict[str, int]
    trail: Trail
    over: bool = False

    def frozen(self) -> bytes:
        return _encode(self.state)

    def copied(self, frozen: bytes) -> Position:
        """Return a copy of the position. ``frozen`` is the result of ``frozen``."""
        return Position(_decoder.decode(frozen), dict(self.entered), dict(self.focus), self.trail)

    @property
    def size(self) -> int:
        """The number of things in the position: the cost of copying or examining it."""
        state = self.state
        branches = sum(len(frame.branches) for frame in state.frames.values())
        levels = sum(len(token.path) for token in state.tokens.values())
        levels += sum(len(run.path) for run in state.loops.values())
        return len(state.tokens) + len(state.slots) + len(state.loops) + branches + levels // 8


def position_key(graph: GraphModel, position: Position) -> Key:
    """Return a key that is equal for positions from which the same can happen."""
    return _Content(graph, position).of(())


class _Content:
    """The contents of each scope."""

    def __init__(self, graph: GraphModel, position: Position) -> None:
        self._graph = graph
        self._focus = position.focus
        self._parts: dict[At, list[Key]] = defaultdict(list)
        self._loops: dict[At, list[LoopRun]] = defaultdict(list)
        self._frames: dict[At, list[Frame]] = defaultdict(list)
        self._rounds: dict[str, set[int]] = defaultdict(set)
        state = position.state
        for token in state.tokens.values():
            if token.mode not in ("joining", "parked"):
                waiting = token.edge if token.mode == "queued" else ""
                self._parts[tuple(token.path)].append(("token", token.node, token.mode, waiting))
        for slot in state.slots.values():
            part = self._slot_key(slot)
            if part is not None:
                self._parts[tuple(slot.path)].append(part)
        for (node, at), times in position.entered.items():
            self._parts[at].append(("entered", node, min(times, 2)))
        for run in state.loops.values():
            self._loops[tuple(run.path)].append(run)
        for frame in state.frames.values():
            # What is left of a fired frame belongs only to the run.
            self._frames[() if frame.fired else tuple(frame.path)].append(frame)
        for at in (*self._parts, *self._loops, *self._frames):
            for seg in at:
                if seg.kind == "l":
                    self._rounds[seg.id].add(seg.n)

    def of(self, at: At) -> Key:
        parts = list(self._parts.get(at, ()))
        for run in self._loops.get(at, ()):
            rounds = tuple((n, self.of((*at, Seg("l", run.id, n)))) for n in sorted(self._rounds[run.id]))
            parts.append(("loop", run.loop, tuple(sorted(run.taken)), rounds))
        for frame in self._frames.get(at, ()):
            # For a settled branch only its arrival matters, and only if the fan-in does not need all.
            branches = (
                (
                    branch.edge,
                    bool(branch.parked),
                    self._focus.get(frame.id) == n,
                    self.of((*at, Seg("f", frame.id, n))),
                )
                for n, branch in frame.branches.items()
                if branch.status == "open"
            )
            parts.append(("frame", frame.opener, frame.fired, self._count_lacking(frame), tuple(sorted(branches))))
        return tuple(sorted(parts))

    def _count_lacking(self, frame: Frame) -> int:
        """Return how many branches must still arrive, if that is not simply all that are left."""
        node = self._graph.nodes[frame.fan_in] if frame.fan_in else None
        fan_in = node.fan_in if node is not None else None
        if node is None or fan_in is None or frame.fired:
            return 0
        if fan_in.need.kind == "all":
            return int(node.deadline is not None and bool(frame.arrived))
        return fan_in.need.of(frame.total) - len(frame.arrived)

    def _slot_key(self, slot: Slot) -> Key | None:
        delivered = sorted((edge, items) for edge, items in slot.items.items() if items)
        if self._graph.nodes[slot.node].join == "edges":
            owed = tuple(sorted(slot.owed.items()))
            return ("slot", slot.node, tuple((edge, tuple(map(bool, items))) for edge, items in delivered), owed)
        if any(item for _, items in delivered for item in items):
            return None  # a plain node that a token has entered is not skipped any more
        return ("skips", slot.node, tuple(edge for edge, _ in delivered))
