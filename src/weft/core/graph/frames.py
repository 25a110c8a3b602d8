"""Find the fan-out that each fan-in closes, and the edges that open a frame. Pure.

In topological order each fan-in climbs its dominators, nearest first, and takes the first free fan-out. Certain
fan-outs are tried before possible ones. The search skips fan-outs that are already closed, and the block in front of
another fan-in or edge join. So a fan-in closes the nearest fan-out that every path to it passes through and that no
other fan-in between them has closed.

Rules: docs/internals/graph.md#12-which-fan-out-a-fan-in-closes.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.findings import Problems, did_you_mean
from weft.core.graph.dominators import Flow
from weft.core.graph.shape import Arc, Shape

_CERTAIN = 2
_POSSIBLE = 1


class Frames:
    """Pairs of fan-ins and fan-outs. ``opener``: the fan-out of each fan-in. ``closer``: the fan-in of each fan-out."""

    def __init__(self, shape: Shape, flow: Flow, problems: Problems) -> None:
        self.opener: dict[int, int] = {}
        self.closer: dict[int, int] = {}
        self._shape = shape
        self._flow = flow
        self._problems = problems
        self._splits = [_fan_out_certainty(shape, node) for node in range(len(shape.names))]

    def is_fan_in(self, node: int) -> bool:
        return node > 0 and self._shape.node(node).fan_in is not None

    def claim_named(self, fan_in: int) -> None:
        """Take the fan-out that the document names. Named ones go first, so that no nearer fan-in takes them."""
        join = self._shape.node(fan_in).fan_in
        assert join is not None
        if join.of not in self._shape.folded.nodes:
            known = did_you_mean(join.of, self._shape.folded.nodes)
            self._problems.add("unknown_node", (*join.at, "of"), f'no node "{join.of}".', known)
            return
        opener = self._shape.names.index(join.of)
        name = self._shape.names[fan_in]
        if not self._splits[opener] or not self._flow.reached(opener):
            why = f"{join.of} is not a fan-out, so {name} cannot close it."
        elif opener == fan_in or not self._flow.dominates(opener, fan_in):
            why = f"there is a path to {name} that does not pass through {join.of}."
        elif opener in self.closer:
            other = self._shape.names[self.closer[opener]]
            self._problems.add("frame_mismatch", join.at, f"{other} and {name} both close the fan-out of {join.of}.")
            return
        else:
            self._pair_opener_with_fan_in(opener, fan_in)
            return
        self._problems.add("fan_in_without_fan_out", join.at, why)

    def claim_nearest(self, fan_in: int) -> None:
        for wanted in (_CERTAIN, _POSSIBLE):
            for node in self._free_above(fan_in):
                if self._splits[node] == wanted:
                    self._pair_opener_with_fan_in(node, fan_in)
                    return
        join = self._shape.node(fan_in).fan_in
        assert join is not None
        name = self._shape.names[fan_in]
        self._problems.add(
            "fan_in_without_fan_out",
            join.at,
            f"{name} closes nothing: no open fan-out is on every path to it.",
            "To wait for all incoming edges, write join: edges.",
        )

    def _pair_opener_with_fan_in(self, opener: int, fan_in: int) -> None:
        self.opener[fan_in] = opener
        self.closer[opener] = fan_in

    def _free_above(self, fan_in: int) -> Iterator[int]:
        """Yield the dominators whose fan-out, if they have one, is still open at the fan-in, nearest first."""
        node = self._flow.dominator(fan_in)
        consumed = False
        while True:
            if not consumed and node not in self.closer:
                yield node
            if node == 0:
                return
            # The block in front of a fan-in begins at its opener, the block in front of an edge join at its dominator.
            # Tokens that were split there have joined again.
            if node in self.opener:
                node, consumed = self.opener[node], True
            else:
                consumed = self._joins_edges(node)
                node = self._flow.dominator(node)

    def _joins_edges(self, node: int) -> bool:
        if self._shape.node(node).join != "edges":
            return False
        return sum(self._flow.reached(arc.source) for arc in self._shape.into[node]) > 1


def find_frames(shape: Shape, flow: Flow, problems: Problems) -> Frames:
    """Pair fan-ins with fan-outs and mark the edges that open a frame."""
    frames = Frames(shape, flow, problems)
    fan_ins = [node for node in flow.order if frames.is_fan_in(node)]
    for node in fan_ins:
        join = shape.node(node).fan_in
        if join is not None and join.of:
            frames.claim_named(node)
    for node in fan_ins:
        join = shape.node(node).fan_in
        if join is not None and not join.of and not problems.full:
            frames.claim_nearest(node)
    for arc in shape.arcs:
        arc.opens = arc.multiplies
    for fan_in, opener in frames.opener.items():
        for node in _nodes_leading_to(fan_in, opener, shape, frames):
            for arc in shape.into[node]:
                if arc.source == opener:
                    arc.opens = True
    return frames


def _nodes_leading_to(fan_in: int, opener: int, shape: Shape, frames: Frames) -> Iterator[int]:
    """Yield the fan-in and all nodes that reach it without passing the opener. Inner frames count as one step."""
    seen = {fan_in, opener}
    stack = [fan_in]
    while stack:
        node = stack.pop()
        yield node
        inner = frames.opener.get(node) if node != fan_in else None
        before = [inner] if inner is not None else [arc.source for arc in shape.into[node]]
        for source in before:
            if source not in seen:
                seen.add(source)
                stack.append(source)


def _fan_out_certainty(shape: Shape, node: int) -> int:
    """Return whether a node is a certain fan-out, a possible one, or none."""
    arcs = shape.out[node]
    if any(arc.multiplies for arc in arcs):
        return _CERTAIN
    fan_out = shape.node(node).fan_out if node > 0 else "tiers"
    arcs = [arc for arc in arcs if not arc.mentions_error]
    if fan_out == "all" and sum(arc.kind == "main" for arc in arcs) > 1:
        return _CERTAIN
    if fan_out == "first_match":
        arcs = [arc for arc in arcs if arc.kind != "main"]
    return max((_split_of(group) for group in _arcs_by_tier(arcs)), default=0)


def _arcs_by_tier(arcs: list[Arc]) -> list[list[Arc]]:
    tiers: dict[tuple[str, int], list[Arc]] = {}
    for arc in arcs:
        tiers.setdefault((arc.kind, arc.tier), []).append(arc)
    return list(tiers.values())


def _split_of(tier: list[Arc]) -> int:
    if len({arc.same for arc in tier}) < len(tier):
        return _CERTAIN
    return _POSSIBLE if len(tier) > 1 else 0
