"""Move tokens: leave a node by edges, arrive at nodes, and join. Edges that are not taken are skipped. Pure.

Rules: docs/internals/graph.md#emit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Raw

from weft.core.events import Taken
from weft.core.graph.board import Board
from weft.core.graph.derived_names import RUN_SCOPE, scope_name
from weft.core.graph.model import START, Edge, Node
from weft.core.graph.tokens import (
    Branch,
    Frame,
    LoopRun,
    Path,
    Seen,
    Seg,
    Slot,
    Token,
    innermost_branch,
    path_key,
    scope_key,
)
from weft.core.ids import derive
from weft.core.run.composites import compose, leaf


class Moves(Board):
    """The moves of the game: emit, arrive, join, skip."""

    # --- emit -----------------------------------------------------------------------------------------------------

    def emit(self, token: Token, node: Node | None, taken: Sequence[Taken], output: Raw, *, skips: bool) -> None:
        """Leave a node by these edges. The token is consumed once its children exist."""
        moves: list[tuple[Token, Edge]] = []
        frame: Frame | None = None
        for taking in sorted(taken, key=self._edge_ordinal) if len(taken) > 1 else taken:
            edge = self.graph.edges[taking.edge]
            path = self._path_behind_edge(token.path, edge)
            if edge.opens:
                frame = frame or self._open_frame(token, node, path)
                moves += self._make_branch_tokens(token, edge, frame, taking, output)
            else:
                parks = self.graph.nodes[edge.to].fan_in is not None
                value = self.arrival if parks and self.arrival else output
                child = self._make_child_token(token, edge, path, value, 0)
                moves.append((child, edge))
        if token.id in self.state.tokens:
            self.consume(token)
        for child, edge in moves:
            if child.mode != "queued":
                self.arrive(child, edge)
        if skips:
            self._skip_others(token.path, node, {taking.edge for taking in taken}, opened=frame is not None)
        if frame is not None:
            self._opened.append(frame)

    def _edge_ordinal(self, taking: Taken) -> int:
        return self.graph.edges[taking.edge].ordinal

    def _path_behind_edge(self, path: Path, edge: Edge) -> Path:
        """Return the path behind an edge. Loops that the edge leaves are popped; a back edge starts the next round."""
        path = list(path)
        if edge.kind == "back":
            while path[-1].kind != "l" or self.state.loops[path[-1].id].loop != edge.loop:
                path.pop()
            top = path.pop()
            return [*path, Seg("l", top.id, top.n + 1)]
        while path and path[-1].kind == "l" and self.state.loops[path[-1].id].loop in edge.exits:
            run = self.state.loops[path.pop().id]
            if edge.name not in run.taken:
                run.taken.append(edge.name)
        return path

    def _make_child_token(self, token: Token, edge: Edge, path: Path, value: Raw, index: int) -> Token:
        child = Token(
            id=derive(token.id, edge.name, index),
            node=edge.to,
            path=path,
            value=value,
            sender=edge.source,
            edge=edge.name,
            seen=token.seen,
            error=token.error,
        )
        return self.make(child)

    def _open_frame(self, token: Token, node: Node | None, path: Path) -> Frame:
        self.state.made += 1
        frame = Frame(
            id=derive("frame", token.id),
            opener=node.id if node is not None else START,
            path=path,
            made=self.state.made,
            since=self.state.seq,
            fan_in=node.closed_by if node is not None else self.graph.start_closed_by,
            seen=token.seen,
        )
        self.state.frames[frame.id] = frame
        outer = innermost_branch(path)
        if outer is not None and outer.id in self.state.frames:
            self.state.frames[outer.id].branches[outer.n].frames[frame.id] = True
        if frame.fan_in:
            self._count_waiting_frame(path, 1)
        return frame

    def _make_branch_tokens(
        self, token: Token, edge: Edge, frame: Frame, taking: Taken, output: Raw
    ) -> list[tuple[Token, Edge]]:
        values = (taking.items or []) if edge.each is not None else [output] * (edge.copies or 1)
        moves = []
        for number, value in enumerate(values):
            index = frame.total
            frame.total += 1
            frame.branches[index] = Branch(edge=edge.name, item=value if edge.each is not None else Raw(b"null"))
            child = self._make_child_token(token, edge, [*frame.path, Seg("f", frame.id, index)], value, index)
            if edge.width and number >= edge.width:
                child.mode = "queued"
                frame.queues.setdefault(edge.name, []).append(child.id)
            moves.append((child, edge))
        return moves

    # --- arriving -------------------------------------------------------------------------------------------------

    def arrive(self, token: Token, edge: Edge) -> None:
        node = self.graph.nodes[edge.to]
        if edge.kind == "back":
            self._activate_token(token, node, inside=edge.loop)
        elif node.fan_in is not None:
            self._park_token(token)
        elif node.join == "edges":
            token.mode = "joining"
            self._deliver_token(node, edge, token.path, token.id)
        else:
            if len(self._edges_waited_for(node, token.path)) > 1:
                self._deliver_token(node, edge, token.path, token.id)
            self._activate_token(token, node)

    def _park_token(self, token: Token) -> None:
        seg = innermost_branch(token.path)
        assert seg is not None, "a fan-in is reached only inside the frame that it closes"
        frame = self.state.frames[seg.id]
        frame.branches[seg.n].parked.append(token.id)
        token.mode = "parked"
        self._count_in_branch(frame, seg, -1)

    def _activate_token(self, token: Token, node: Node, inside: str = "") -> None:
        """Let the token work at this node."""
        self._enter_loops(token, node, inside)
        token.node = node.id
        self._put_on_agenda(token, "ready")

    def _enter_loops(self, token: Token, node: Node, inside: str = "") -> None:
        """Enter the loops that the node heads, outermost first, except those that the token is already in."""
        heads = node.heads
        if inside:
            heads = heads[heads.index(inside) + 1 :]
        for loop in heads:
            self.state.made += 1
            run = LoopRun(id=derive("loop", token.id, loop), loop=loop, path=list(token.path), made=self.state.made)
            self.state.loops[run.id] = run
            seg = Seg("l", run.id, 0)
            token.path = [*token.path, seg]
            run.live += 1
            outer = innermost_branch(run.path)
            if outer is not None and outer.id in self.state.frames:
                self.state.frames[outer.id].branches[outer.n].loops[run.id] = True

    # --- joins and skips ------------------------------------------------------------------------------------------

    def _edges_waited_for(self, node: Node, path: Path) -> list[str]:
        """Return the forward edges that can deliver to a node in this scope."""
        if not node.waits:
            return node.incoming
        here = self._static_scope(path)
        return next((delivery.edges for delivery in node.waits if delivery.scope == here), node.incoming)

    def _static_scope(self, path: Path) -> str:
        # A detached branch has lost the beginning of its path. Its frame has the scope of that beginning.
        scope = self.state.frames[path[0].id].scope if path and path[0].kind == "f" else RUN_SCOPE
        for seg in path:
            branch = seg.kind == "f"
            level = self.state.frames[seg.id].branches[seg.n].edge if branch else self.state.loops[seg.id].loop
            scope = scope_name(scope, level)
        return scope

    def _deliver_token(self, node: Node, edge: Edge, path: Path, item: str) -> None:
        """Deliver a token (or "" for a skip) by an edge to a node in this scope."""
        key = f"{node.id}|{path_key(path)}"
        slot = self.state.slots.get(key)
        if slot is None:
            slot = self.state.slots[key] = Slot(node=node.id, path=list(path))
            self.state.places.setdefault(scope_key(path), {})[key] = True
        if slot.owed.get(edge.name):
            self._end_late_delivery(slot, edge, item)
            return
        slot.items.setdefault(edge.name, []).append(item)
        waited = self._edges_waited_for(node, path)
        if len(slot.items) < len(waited) or any(not slot.items.get(name) for name in waited):
            if item and node.join == "edges":
                self._set_join_deadline(slot, node)
            return
        if node.join == "edges":
            self._try_join(node, slot)
        elif not slot.ran and all(entry == "" for name in waited for entry in slot.items[name]):
            self._forget_slot(key)
            self._skip_node(node, path)

    def _set_join_deadline(self, slot: Slot, node: Node) -> None:
        """Request the deadline of a join, which begins at its first arrival."""
        key = f"s{node.id}|{path_key(slot.path)}"
        if node.deadline is not None and not slot.timer and key not in self.state.unarmed:
            self.state.unarmed.append(key)

    def _end_late_delivery(self, slot: Slot, edge: Edge, item: str) -> None:
        """Discard a delivery to a join that continued without this edge."""
        slot.owed[edge.name] -= 1
        if not slot.owed[edge.name]:
            del slot.owed[edge.name]
        if item:
            self.consume(self.state.tokens[item])
        if not slot.owed and not slot.ran and not any(slot.items.values()):
            self._forget_slot(f"{slot.node}|{path_key(slot.path)}")

    def close_slot(self, slot: Slot) -> list[tuple[str, str]]:
        """Take what has arrived at a join, one item per edge.

        The join stops waiting for edges that delivered nothing.
        """
        self.disarm(slot)
        taken = []
        waited = self._edges_waited_for(self.graph.nodes[slot.node], slot.path)
        if len(slot.items) > len(waited):
            for name in [name for name in slot.items if name not in self.graph.edges]:
                slot.items[name] = slot.items[name][1:]  # a skip over an edge that a patch has removed
        for name in waited:
            if slot.items.get(name):
                taken.append((name, slot.items[name].pop(0)))
            else:
                slot.owed[name] = slot.owed.get(name, 0) + 1
        if any(item for items in slot.items.values() for item in items):
            self._set_join_deadline(slot, self.graph.nodes[slot.node])
        elif not slot.owed and not slot.ran and not any(slot.items.values()):
            self._forget_slot(f"{slot.node}|{path_key(slot.path)}")
        return taken

    def _try_join(self, node: Node, slot: Slot) -> None:
        taken = self.close_slot(slot)
        real = [(name, self.state.tokens[item]) for name, item in taken if item]
        if not real:
            if not slot.ran:
                self._skip_node(node, slot.path)
            return
        joined = Token(
            id=derive("join", node.id, path_key(slot.path), *(token.id for _, token in real)),
            node=node.id,
            path=list(slot.path),
            value=self._join_value(real),
            edge=real[-1][0],
            sender=real[-1][1].sender,
            seen=merge_seen(token for _, token in real),
        )
        self.make(joined)
        for _, token in real:
            self.consume(token)
        self._activate_token(joined, node)

    def _join_value(self, real: Sequence[tuple[str, Token]]) -> Raw:
        """Return the input of a join: the outputs by sender."""
        return compose({self.graph.edges[name].source: leaf(token.value) for name, token in real})

    def _forget_slot(self, key: str) -> None:
        slot = self.state.slots.pop(key, None)
        if slot is not None:
            self.disarm(slot)
            place = self.state.places.get(scope_key(slot.path))
            if place is not None:
                place.pop(key, None)

    def _skip_others(self, path: Path, node: Node | None, taken: set[str], *, opened: bool) -> None:
        if node is None:
            others = [name for name in self.graph.start if name not in taken]
        else:
            others = [name for name in node.main if name not in taken]
            if node.repeat is not None:
                others += [name for name in node.repeat.exhausted if name not in taken]
        for name in others:
            self._skip_edge(self.graph.edges[name], path)
        if node is not None and node.opening and not opened and self._closes_here(node, path):
            self._skip_node(self.graph.nodes[node.closed_by], path)

    def _closes_here(self, node: Node, path: Path) -> bool:
        """Return whether the frame that a node opens is in this scope, and not outside the innermost loop."""
        if not node.opening or not node.closed_by:
            return False
        return not self._leaves_innermost_loop(self.graph.edges[node.opening[0]], path)

    def _leaves_innermost_loop(self, edge: Edge, path: Path) -> bool:
        """Return whether an edge leaves the innermost loop of a path."""
        return bool(path) and path[-1].kind == "l" and self.state.loops[path[-1].id].loop in edge.exits

    def _pass_skips_on(self, things: Sequence[tuple[Edge | Node, Path]]) -> None:
        """Pass skips on, each with all its consequences before the next. Iterative, because graphs may be deep."""
        if self._skipping is not None:
            self._skipping += reversed(things)
            return
        self._skipping = list(reversed(things))
        while self._skipping:
            thing, path = self._skipping.pop()
            if isinstance(thing, Edge):
                self._pass_edge(thing, path)
            else:
                self._pass_node(thing, path)
        self._skipping = None

    def _skip_edge(self, edge: Edge, path: Path) -> None:
        self._pass_skips_on([(edge, path)])

    def _skip_node(self, node: Node, path: Path) -> None:
        self._pass_skips_on([(node, path)])

    def _pass_edge(self, edge: Edge, path: Path) -> None:
        """Send a skip along an edge. A skip never enters a loop or a frame; it continues behind them."""
        if edge.kind == "back" or edge.opens:
            return
        if self._leaves_innermost_loop(edge, path):
            return
        node = self.graph.nodes[edge.to]
        if node.fan_in is not None:
            return
        if node.join == "edges" or len(self._edges_waited_for(node, path)) > 1:
            self._deliver_token(node, edge, path, "")
        else:
            self._skip_node(node, path)

    def _pass_node(self, node: Node, path: Path) -> None:
        if node.heads:
            self._skip_exits(node.heads[0], (), path)
            return
        things: list[tuple[Edge | Node, Path]] = [(self.graph.edges[name], path) for name in node.main]
        if self._closes_here(node, path):
            things.append((self.graph.nodes[node.closed_by], path))
        self._pass_skips_on(things)

    def _skip_exits(self, loop: str, taken: Sequence[str], path: Path) -> None:
        """Skip the exits of a loop that no token took, in the scope around the loop."""
        edges = [self.graph.edges[name] for name in self.graph.loops[loop].exits]
        edges = [edge for edge in edges if edge.exits and edge.exits[-1] == loop]
        opened = {edge.source for edge in edges if edge.opens and edge.name in taken}
        things: list[tuple[Edge | Node, Path]] = [(edge, path) for edge in edges if edge.name not in taken]
        # A frame behind the loop is skipped too, once for all edges that open it.
        openers = dict.fromkeys(edge.source for edge in edges if edge.opens and edge.source not in opened)
        closers = [self.graph.nodes[opener].closed_by for opener in openers]
        things += [(self.graph.nodes[closer], path) for closer in closers if closer]
        self._pass_skips_on(things)


def merge_seen(tokens: Iterable[Token]) -> dict[str, Seen]:
    """Merge what the joining tokens have seen: for each node the latest visit, then the later edge."""
    seen: dict[str, Seen] = {}
    for token in tokens:
        for name, past in token.seen.items():
            known = seen.get(name)
            if known is None or past.visit >= known.visit:
                seen[name] = past
    return seen
