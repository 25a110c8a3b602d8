"""The state of a graph run by node: its tokens, its incomplete joins, and the rounds of its loops. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec

from weft.core.graph.model import START, GraphModel, Node
from weft.core.graph.tokens import Frame, GraphState, Slot, Token
from weft.observe.pictures.model import Box, Mark

FIRST: tuple[Mark, ...] = ("failed", "working", "waiting", "queued")
"""The marks by priority. The first one that a token at a node has is the mark of the node."""

NAMES_MAX = 3
"""The maximum number of names in a list of what a join waits for."""


class NodeStates:
    """The state of a graph run by node. All tokens are read once, when it is created."""

    def __init__(self, graph: GraphModel, state: GraphState, taken: Collection[str]) -> None:
        self.graph = graph
        self.state = state
        self.taken = taken
        self.is_over = state.over or state.ended
        self._tokens: dict[str, Counter[Mark]] = {}
        self._attempts: dict[str, tuple[int, int]] = {}
        self._rounds: dict[str, set[int]] = {}
        self._frames: dict[str, list[Frame]] = {}
        self._slots: dict[str, list[Slot]] = {}
        for token in state.tokens.values():
            self._count(token)
        for frame in state.frames.values():
            if not frame.fired:
                self._frames.setdefault(frame.fan_in, []).append(frame)
        for slot in state.slots.values():
            self._slots.setdefault(slot.node, []).append(slot)
        self._ahead = self._reachable()

    def mark_box(self, box: Box, node: Node) -> Box:
        """Return the box of a node with its mark and badges."""
        times = self.state.executed.get(node.id, 0)
        return msgspec.structs.replace(box, mark=self._mark(node, times), times=times, badges=tuple(self._badges(node)))

    # --- reading --------------------------------------------------------------------------------------------------

    def _count(self, token: Token) -> None:
        mark = self._activity(token)
        if mark is None:
            return
        self._tokens.setdefault(token.node, Counter())[mark] += 1
        task = self.state.tasks.get(token.task)
        if task is not None and task.attempt > 1:
            known = self._attempts.get(token.node, (0, 0))
            self._attempts[token.node] = max(known, (task.attempt, task.policy.attempts_max))
        for seg in token.path:
            run = self.state.loops.get(seg.id) if seg.kind == "l" else None
            if run is not None:
                self._rounds.setdefault(run.loop, set()).add(seg.n + 1)

    def _activity(self, token: Token) -> Mark | None:
        """Return what a token does; None for a token that remained when the run ended."""
        if token.mode == "failing":
            return "failed"
        if self.is_over:
            return None
        if token.mode == "queued":
            return "queued"
        state = self.state
        if token.mode in ("joining", "parked") or any(
            token.task in kind for kind in (state.asks, state.timers, state.waits)
        ):
            return "waiting"
        return "working"

    def _reachable(self) -> set[str]:
        """Return the nodes that a live token or an open join can still reach."""
        if self.is_over:
            return set()
        stack = [*self._tokens, *filter(None, self._frames)] if self.state.begun else [START]
        reachable = set(stack)
        while stack:
            for to in self._next(stack.pop()):
                if to not in reachable:
                    reachable.add(to)
                    stack.append(to)
        return reachable

    def _next(self, name: str) -> Iterator[str]:
        node = self.graph.nodes.get(name)
        if node is None:
            yield from (self.graph.edges[name].to for name in self.graph.start)
            return
        for tier in node.tiers:
            yield from (self.graph.edges[name].to for name in tier)
        if node.repeat is not None:
            yield from (self.graph.edges[name].to for name in (node.repeat.back, *node.repeat.exhausted))

    # --- marks and badges -----------------------------------------------------------------------------------------

    def _mark(self, node: Node, times: int) -> Mark:
        here = self._tokens.get(node.id, Counter())
        for mark in FIRST:
            if here[mark]:
                return mark
        if not self.is_over and any(frame.arrived for frame in self._frames.get(node.id, ())):
            return "waiting"
        if times:
            return "done"
        if self._caught(node):
            return "failed"
        return "idle" if node.id in self._ahead else "skipped"

    def _caught(self, node: Node) -> bool:
        """Return whether an edge for failures of the node was taken."""
        return any(name in self.taken for tier in node.error_tiers for name in tier)

    def _badges(self, node: Node) -> Iterator[str]:
        here = self._tokens.get(node.id, Counter())
        if sum(here.values()) > 1 and node.fan_in is None:
            yield from (f"{here[mark]} {mark}" for mark in FIRST if here[mark])
        if node.id in self._attempts:
            attempt, most = self._attempts[node.id]
            yield f"attempt {attempt} of {most}"
        if self._caught(node):
            yield "failure caught"
        if self.is_over:
            return
        if node.repeat is not None and node.repeat.loop in self._rounds:
            rounds = self._rounds[node.repeat.loop]
            few, most = min(rounds), max(rounds)
            yield f"round {few}/{node.repeat.at_most}" if few == most else f"rounds {few}–{most}/{node.repeat.at_most}"
        yield from self._branches(node)
        if node.join == "edges" and node.id in self._slots:
            yield self._missing_sources(node, self._slots[node.id])

    def _branches(self, node: Node) -> Iterator[str]:
        """Describe how many branches have reached a fan-in or, without one, how many of the fan-out are done."""
        frames = self._frames.get(node.id, []) if node.fan_in is not None else []
        if frames:
            where = f" in {len(frames)} fan-outs" if len(frames) > 1 else ""
            arrived, total = sum(len(frame.arrived) for frame in frames), sum(frame.total for frame in frames)
            yield f"{arrived} of {total} branches{where}"
            assert node.fan_in is not None
            if node.fan_in.need.kind != "all":
                yield f"needs {sum(node.fan_in.need.of(frame.total) for frame in frames)}"
            failed = sum(len(frame.failed) for frame in frames)
            ended = sum(frame.settled for frame in frames) - arrived - failed
            yield from (f"{count} {word}" for count, word in ((failed, "failed"), (ended, "ended")) if count)
        open_ended = [frame for frame in self._frames.get("", []) if frame.opener == node.id]
        if open_ended:
            yield f"{sum(f.settled for f in open_ended)} of {sum(f.total for f in open_ended)} branches done"

    def _missing_sources(self, node: Node, slots: list[Slot]) -> str:
        if len(slots) > 1:
            return f"{len(slots)} joins incomplete"
        arrived = {name for name, items in slots[0].items.items() if items}
        awaited = next((d.edges for d in node.waits if arrived <= set(d.edges)), node.incoming)
        names = [self.graph.edges[name].source or "start" for name in awaited if name not in arrived]
        more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
        return f"waits for {', '.join(names[:NAMES_MAX])}{more}"
