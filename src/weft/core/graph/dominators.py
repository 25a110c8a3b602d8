"""Order, reachability and dominance in a graph without its back edges. Pure, near-linear.

Only back edges may close cycles. Any other cycle is reported and cut, so that the rest can still be checked.
"""

from __future__ import annotations

import heapq

from weft.core.findings import Problems
from weft.core.graph.shape import Arc, Shape, link_arcs


class Flow:
    """``order``: reachable nodes in topological order, ties by document order.

    ``place``: its inverse (-1: unreachable).
    """

    def __init__(self, shape: Shape) -> None:
        self.order = _topological_order(shape)
        self.place = [-1] * len(shape.names)
        for place, node in enumerate(self.order):
            self.place[node] = place
        self._depth = [0] * len(shape.names)
        self._parent = [0] * len(shape.names)
        self._jump = [0] * len(shape.names)
        for node in self.order[1:]:
            self._add_to_tree(node, shape)

    def reached(self, node: int) -> bool:
        return self.place[node] >= 0

    def dominator(self, node: int) -> int:
        """Return the nearest node that every path to this one passes through (for start: start)."""
        return self._parent[node]

    def dominates(self, above: int, node: int) -> bool:
        """Return whether every path to ``node`` passes through ``above``. A node dominates itself."""
        return self._ancestor_at_depth(node, self._depth[above]) == above

    def _add_to_tree(self, node: int, shape: Shape) -> None:
        """Add a node to the dominator tree, below the nearest common dominator of its predecessors."""
        sources = [arc.source for arc in shape.into[node] if self.reached(arc.source)]
        parent = sources[0]
        for source in sources[1:]:
            parent = self._common_ancestor(parent, source)
        far = self._jump[parent]
        # Skew-binary jump pointers: any ancestor in logarithmic time, with one pointer per node.
        even = self._depth[parent] - self._depth[far] == self._depth[far] - self._depth[self._jump[far]]
        self._parent[node] = parent
        self._depth[node] = self._depth[parent] + 1
        self._jump[node] = self._jump[far] if even else parent

    def _ancestor_at_depth(self, node: int, depth: int) -> int:
        while self._depth[node] > depth:
            node = self._jump[node] if self._depth[self._jump[node]] >= depth else self._parent[node]
        return node

    def _common_ancestor(self, a: int, b: int) -> int:
        depth = min(self._depth[a], self._depth[b])
        a, b = self._ancestor_at_depth(a, depth), self._ancestor_at_depth(b, depth)
        while a != b:
            if self._jump[a] != self._jump[b]:
                a, b = self._jump[a], self._jump[b]
            else:
                a, b = self._parent[a], self._parent[b]
        return a


def _topological_order(shape: Shape) -> list[int]:
    reached = _reachable_nodes(shape)
    waiting = [sum(arc.source in reached for arc in arcs) for arcs in shape.into]
    ready = [0]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for arc in shape.out[node]:
            waiting[arc.to] -= 1
            if waiting[arc.to] == 0:
                heapq.heappush(ready, arc.to)
    assert len(order) == len(reached), "cycles have been cut"
    return order


def _reachable_nodes(shape: Shape) -> set[int]:
    reached = {0}
    stack = [0]
    while stack:
        for arc in shape.out[stack.pop()]:
            if arc.to not in reached:
                reached.add(arc.to)
                stack.append(arc.to)
    return reached


def cut_cycles(shape: Shape, problems: Problems) -> None:
    """Report every cycle without a limit, and remove the edge that closes it."""
    state = [0] * len(shape.names)  # 0 not seen, 1 on the current path, 2 done
    cut: set[int] = set()
    for root in range(len(shape.names)):
        if state[root] == 0:
            _cut_from(root, shape, state, cut, problems)
    if cut:
        shape.arcs = [arc for arc in shape.arcs if arc.ordinal not in cut]
        _reopen_cut_entries(shape)


def _cut_from(root: int, shape: Shape, state: list[int], cut: set[int], problems: Problems) -> None:
    state[root] = 1
    way = [root]
    nexts = [iter(shape.out[root])]
    while way:
        arc = next(nexts[-1], None)
        if arc is None:
            state[way.pop()] = 2
            nexts.pop()
        elif state[arc.to] == 1:
            cut.add(arc.ordinal)
            if not problems.full:
                _note_cycle(arc, way[way.index(arc.to) :], shape, problems)
        elif state[arc.to] == 0:
            state[arc.to] = 1
            way.append(arc.to)
            nexts.append(iter(shape.out[arc.to]))


def _note_cycle(arc: Arc, way: list[int], shape: Shape, problems: Problems) -> None:
    names = [shape.names[node] for node in (*way, arc.to)]
    cycle = " -> ".join(names if len(names) <= 8 else [*names[:4], "…", *names[-3:]])
    problems.add(
        "cycle_without_limit",
        arc.at,
        f"{cycle} is a cycle without a limit.",
        f"Close it with repeat on {shape.names[arc.source]}: {{while: …, at_most: …, back_to: {shape.names[arc.to]}}}.",
    )


def _reopen_cut_entries(shape: Shape) -> None:
    """Make nodes without incoming edges after a cut entries, so that the nodes of a cycle are still checked."""
    link_arcs(shape)
    bare = [node for node in range(1, len(shape.names)) if not shape.into[node]]
    shape.arcs += [Arc(0, node, "main", shape.node(node).at) for node in bare]
    for ordinal, arc in enumerate(shape.arcs):
        arc.ordinal = ordinal
    link_arcs(shape)
