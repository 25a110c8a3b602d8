"""Prove that scopes nest like parentheses by propagating static scope paths from start. Pure.

A path is a list of opening edges and loops. An edge pops the loops it exits (only those above the innermost frame), an
opening edge pushes, a fan-in pops, a header pushes. Paths are interned, so a step costs the same at every depth.

Rules: docs/internals/graph.md#13-proof-that-scopes-nest.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from weft.core.findings import Problems
from weft.core.graph.dominators import Flow
from weft.core.graph.frames import Frames
from weft.core.graph.loops import Loops
from weft.core.graph.shape import Arc, Shape

ROOT = 0
PATHS_PER_NODE_MAX = 64
LEVELS_MAX = 100
"""How deep loops and fan-outs may be nested. Every token carries its whole path, so the cost grows with the square."""


class Level(NamedTuple):
    """One level of a static path: the branch of an opening edge, or a loop, inside ``parent``. Level 0 is the run."""

    parent: int
    edge: int = -1
    loop: int = -1


class Scopes:
    """The static paths of a graph. ``all``: each path by number, as its last level. ``works``: where each node works.

    ``delivers``: for each node, which incoming edges deliver in which path (before a header pushes).
    """

    def __init__(self, shape: Shape, flow: Flow, loops: Loops, frames: Frames) -> None:
        self.all: list[Level] = [Level(-1)]
        self.works: list[list[int]] = [[] for _ in shape.names]
        self.delivers: list[dict[int, list[int]]] = [{} for _ in shape.names]
        self._made: dict[tuple[int, int, int], int] = {}
        self._depth = [0]
        self._shape = shape
        self._flow = flow
        self._loops = loops
        self._frames = frames

    def prove(self, problems: Problems) -> bool:
        """Fill everything in and report what does not nest. Returns False if there are too many paths."""
        room = PATHS_PER_NODE_MAX * len(self._flow.order)
        arriving: defaultdict[int, dict[int, list[int]]] = defaultdict(dict)
        arriving[0] = {ROOT: []}
        for node in self._flow.order:
            delivered = self.delivers[node] = arriving.pop(node, {})
            self.works[node] = self._scopes_of_work(node, delivered, problems)
            self._check_back(node, problems)
            self._check_openings(node, problems)
            room -= len(self.works[node])
            if room < 0:
                problems.add(
                    "too_tangled", self._shape.node(node).at, "too many branches that never join again meet here."
                )
                return False
            if any(self._depth[scope] > LEVELS_MAX for scope in self.works[node]):
                message = f"more than {LEVELS_MAX} loops and fan-outs are nested here."
                problems.add("too_tangled", self._shape.node(node).at, message)
                return False
            for arc in self._shape.out[node]:
                for scope in self.works[node]:
                    arriving[arc.to].setdefault(self._scope_along_arc(arc, scope), []).append(arc.ordinal)
        return True

    def levels(self, scope: int) -> list[Level]:
        """Return the levels of a path, innermost first."""
        found = []
        while scope != ROOT:
            found.append(self.all[scope])
            scope = self.all[scope].parent
        return found

    def in_branch(self, node: int) -> bool:
        """Return whether a token at the node may be in a branch of a frame."""
        return any(level.edge >= 0 for scope in self.works[node] for level in self.levels(scope))

    def popped(self, arc: Arc, scope: int) -> int:
        """Return the path after an edge has left the loops that it exits."""
        while self.all[scope].loop >= 0 and self.all[scope].loop in arc.exits:
            scope = self.all[scope].parent
        return scope

    def _push_level(self, scope: int, *, edge: int = -1, loop: int = -1) -> int:
        key = (scope, edge, loop)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = len(self.all)
            self.all.append(Level(scope, edge, loop))
            self._depth.append(self._depth[scope] + 1)
        return made

    def _scope_along_arc(self, arc: Arc, scope: int) -> int:
        outside = self.popped(arc, scope)
        while scope != outside:
            exits = self._loops.rings[self.all[scope].loop].exits
            if not exits or exits[-1] != arc.ordinal:
                exits.append(arc.ordinal)
            scope = self.all[scope].parent
        return self._push_level(outside, edge=arc.ordinal) if arc.opens else outside

    def _scopes_of_work(self, node: int, delivered: dict[int, list[int]], problems: Problems) -> list[int]:
        """Return the paths in which the node works, given the paths in which its edges deliver."""
        if node == 0:
            return [ROOT]
        scopes = list(delivered)
        if self._shape.node(node).join == "edges":
            self._check_join(node, delivered, problems)
        elif node in self._frames.opener:
            scopes = self._leave_frame(node, scopes, problems)
        for loop in self._loops.heads[node]:
            scopes = [self._push_level(scope, loop=loop) for scope in scopes]
        return list(dict.fromkeys(scopes))

    def _leave_frame(self, fan_in: int, scopes: list[int], problems: Problems) -> list[int]:
        left = []
        opener = self._frames.opener[fan_in]
        for scope in scopes:
            level = self.all[scope]
            if level.edge >= 0 and self._shape.arcs[level.edge].source == opener:
                left.append(level.parent)
            else:
                self._note_mismatch(fan_in, scope, problems)
        return left or [ROOT]

    def _note_mismatch(self, fan_in: int, scope: int, problems: Problems) -> None:
        join = self._shape.node(fan_in).fan_in
        assert join is not None
        name = self._shape.names[fan_in]
        opener = self._shape.names[self._frames.opener[fan_in]] or "start"
        why = self._describe_scope(scope)
        problems.add(
            "frame_mismatch", join.at, f"{name} closes the fan-out of {opener}, but a token may arrive there {why}."
        )

    def _describe_scope(self, scope: int) -> str:
        level = self.all[scope]
        if level.edge >= 0:
            arc = self._shape.arcs[level.edge]
            source = self._shape.names[arc.source] or "start"
            return f"inside the branch {source} -> {self._shape.names[arc.to]}"
        if level.loop >= 0:
            return f"inside the loop of {self._shape.names[self._loops.rings[level.loop].header]}"
        return "outside every fan-out"

    def _check_join(self, node: int, delivered: dict[int, list[int]], problems: Problems) -> None:
        edges = {ordinal for ordinals in delivered.values() for ordinal in ordinals}
        for scope, ordinals in delivered.items():
            missing = sorted(edges.difference(ordinals))
            if missing:
                name = self._shape.names[node]
                silent = ", ".join(self._shape.names[self._shape.arcs[edge].source] or "start" for edge in missing[:5])
                problems.add(
                    "join_across_branches",
                    self._shape.node(node).at,
                    f"{name} waits for all its edges, but a token that arrives {self._describe_scope(scope)} "
                    f"can never meet one from {silent}.",
                    "Close the fan-out with join: all, or let the node run once per token.",
                )
                return

    def _check_back(self, node: int, problems: Problems) -> None:
        arc = self._shape.back.get(node)
        if arc is None or arc.loop < 0:
            return
        for scope in self.works[node]:
            inner = scope
            while self.all[inner].loop >= 0 and self.all[inner].loop != arc.loop:
                inner = self.all[inner].parent
            if self.all[inner].loop != arc.loop:
                latch, header = self._shape.names[arc.source], self._shape.names[arc.to]
                scope_left = self._describe_scope(inner).removeprefix("inside ")
                problems.add(
                    "loop_leaves_frame",
                    arc.at,
                    f"{latch} cannot go back to {header}: it would leave {scope_left}.",
                    "Close the fan-out with a join inside the loop.",
                )
                return

    def _check_openings(self, node: int, problems: Problems) -> None:
        """Check that all opening edges of a node open their shared frame in the same scope."""
        opening = [arc for arc in self._shape.out[node] if arc.opens]
        for scope in self.works[node]:
            if len({self.popped(arc, scope) for arc in opening}) > 1:
                problems.add(
                    "frame_half_in_loop",
                    opening[0].at,
                    f"some branches of {self._shape.names[node] or 'start'} stay in a loop that others leave.",
                )
                return
