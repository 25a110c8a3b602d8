"""The token game: how tokens move, meet, split, are skipped and settle. Pure structure: no condition is evaluated here.

One move at a time changes the state in place and notes which scopes may have run empty; ``settle`` then works out all
that follows, deepest scope first. The words and rules are those of the graph semantics, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.events import Taken
from weft.core.graph.merging import branch_output, merged, write
from weft.core.graph.model import START, Edge, Graph, Node
from weft.core.graph.tokens import (
    Branch,
    Frame,
    GraphState,
    LoopRun,
    Path,
    Seen,
    Seg,
    Slot,
    Token,
    derive,
    innermost_branch,
    path_key,
    scope_key,
)
from weft.errors import Failure

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Game:
    """Moves over one state. Lives as long as one event is taken in."""

    def __init__(self, graph: Graph, state: GraphState) -> None:
        self.graph = graph
        self.state = state
        self._empty: dict[str, Seg] = {}
        """Scopes that may have run empty, by key, in the order in which that was seen."""

    # --- tokens ---------------------------------------------------------------------------------------------------

    def make(self, token: Token) -> Token:
        self.state.tokens[token.id] = token
        self._count(token.path, 1, token.id)
        return token

    def consume(self, token: Token) -> None:
        del self.state.tokens[token.id]
        if token.task:
            self.state.by_task.pop(token.task, None)
        self._count(token.path, -1, token.id, parked=token.mode == "parked")

    def drop(self, token: Token) -> None:
        """A token vanishes with what it waits for; work that can be undone is waited for, nobody reads its answer."""
        state, number = self.state, token.task
        self.consume(token)
        task = state.tasks.get(number)
        if task is not None and task.undo is not None and not task.due:
            task.draining = True
            return
        child = state.children.get(number)
        if child is not None:
            child.cancelled = True
            state.gone_children.append(child.uid)
        elif number:
            for table in (state.tasks, state.timers, state.asks):
                table.pop(number, None)
            state.gone.append(number)

    def _count(self, path: Path, by: int, member: str, *, parked: bool = False) -> None:
        own = innermost_branch(path) if parked else None
        for seg in path:
            if seg.kind == "l":
                self._live_loop(seg, by)
                continue
            frame = self.state.frames.get(seg.id)
            if frame is None:
                continue
            if by > 0:
                frame.members[member] = True
            else:
                frame.members.pop(member, None)
            if seg is not own:
                self._live_branch(frame, seg, by)

    def _live_loop(self, seg: Seg, by: int) -> None:
        run = self.state.loops.get(seg.id)
        if run is not None:
            run.live += by
            if run.live == 0:
                self._empty[f"l{seg.id}"] = seg

    def _live_branch(self, frame: Frame, seg: Seg, by: int) -> None:
        branch = frame.branches.get(seg.n)
        if branch is not None:
            branch.live += by
            if branch.live == 0:
                self._empty[f"f{seg.id}.{seg.n}"] = seg

    def _weigh(self, path: Path, by: int) -> None:
        """A frame that waits for its fan-in counts for the scopes around it."""
        for seg in path:
            if seg.kind == "l":
                self._live_loop(seg, by)
            elif (frame := self.state.frames.get(seg.id)) is not None:
                self._live_branch(frame, seg, by)

    def _wake(self, token: Token, mode: str) -> None:
        token.mode = mode  # type: ignore[assignment]
        self.state.agenda.append(token.id)

    # --- emit -----------------------------------------------------------------------------------------------------

    def emit(self, token: Token, node: Node | None, taken: Sequence[Taken], output: Raw, *, skips: bool) -> None:
        """Leave a node by these edges; the token is consumed once all that it sends is there."""
        moves: list[tuple[Token, Edge]] = []
        frame: Frame | None = None
        for taking in sorted(taken, key=lambda one: one.edge):
            edge = self.graph.edges[taking.edge]
            path = self._leave(token.path, edge)
            if edge.opens:
                frame = frame or self._open(token, node, path)
                moves += self._branches(token, edge, frame, taking, output)
            else:
                child = self._child(token, edge, path, output, 0)
                moves.append((child, edge))
        if token.id in self.state.tokens:
            self.consume(token)
        for child, edge in moves:
            if child.mode != "queued":
                self.arrive(child, edge)
        if skips:
            self._skip_others(token.path, node, {taking.edge for taking in taken}, opened=frame is not None)
        if frame is not None:
            self._judge(frame)

    def _leave(self, path: Path, edge: Edge) -> Path:
        """The path behind an edge: loops that it leaves are popped, a back edge goes round once more."""
        path = list(path)
        if edge.kind == "back":
            while path[-1].kind != "l" or self.state.loops[path[-1].id].loop != edge.loop:
                path.pop()
            top = path.pop()
            return [*path, Seg("l", top.id, top.n + 1)]
        while path and path[-1].kind == "l" and self.state.loops[path[-1].id].loop in edge.exits:
            run = self.state.loops[path.pop().id]
            if edge.ordinal not in run.taken:
                run.taken.append(edge.ordinal)
        return path

    def _child(self, token: Token, edge: Edge, path: Path, value: Raw, index: int) -> Token:
        child = Token(
            id=derive(token.id, edge.ordinal, index),
            node=edge.to,
            path=path,
            value=value,
            sender=edge.source,
            edge=edge.ordinal,
            seen=token.seen,
            error=token.error,
        )
        return self.make(child)

    def _open(self, token: Token, node: Node | None, path: Path) -> Frame:
        self.state.made += 1
        frame = Frame(
            id=derive("frame", token.id),
            opener=node.id if node is not None else START,
            path=path,
            made=self.state.made,
            fan_in=node.closed_by if node is not None else self.graph.start_closed_by,
            seen=token.seen,
        )
        self.state.frames[frame.id] = frame
        outer = innermost_branch(path)
        if outer is not None and outer.id in self.state.frames:
            self.state.frames[outer.id].frames.append(frame.id)
        if frame.fan_in:
            self._weigh(path, 1)
        return frame

    def _branches(self, token: Token, edge: Edge, frame: Frame, taking: Taken, output: Raw) -> list[tuple[Token, Edge]]:
        if edge.each is not None:
            values = taking.items or []
        else:
            values = [output] * (edge.copies or 1)
        moves = []
        for number, value in enumerate(values):
            index = frame.total
            frame.total += 1
            frame.branches[index] = Branch(edge=edge.ordinal, item=value if edge.each is not None else Raw(b"null"))
            child = self._child(token, edge, [*frame.path, Seg("f", frame.id, index)], value, index)
            if edge.width and number >= edge.width:
                child.mode = "queued"
                frame.queues.setdefault(edge.ordinal, []).append(child.id)
            moves.append((child, edge))
        return moves

    # --- arriving -------------------------------------------------------------------------------------------------

    def arrive(self, token: Token, edge: Edge) -> None:
        node = self.graph.nodes[edge.to]
        if edge.kind == "back":
            self._activate(token, node, inside=edge.loop)
        elif node.fan_in is not None:
            self._park(token)
        elif node.join == "edges":
            token.mode = "joining"
            self._deliver(node, edge, token.path, token.id)
        else:
            if len(self._waited(node, token.path)) > 1:
                self._deliver(node, edge, token.path, token.id)
            self._activate(token, node)

    def _park(self, token: Token) -> None:
        seg = innermost_branch(token.path)
        assert seg is not None, "a fan-in is reached only inside the frame that it closes"
        branch = self.state.frames[seg.id].branches[seg.n]
        branch.parked.append(token.id)
        token.mode = "parked"
        branch.live -= 1
        if branch.live == 0:
            self._empty[f"f{seg.id}.{seg.n}"] = seg

    def _activate(self, token: Token, node: Node, inside: int = -1) -> None:
        """The token works here; loops that the node heads are entered, outermost first."""
        heads = node.heads
        if inside >= 0:
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
                self.state.frames[outer.id].loops.append(run.id)
        token.node = node.id
        self._wake(token, "ready")

    # --- joins and skips ------------------------------------------------------------------------------------------

    def _waited(self, node: Node, path: Path) -> list[int]:
        """The forward edges that can deliver to a node in this scope."""
        if not node.waits:
            return node.incoming
        return node.waits.get(self._static_scope(path), node.incoming)

    def _static_scope(self, path: Path) -> int:
        scope = 0
        for seg in path:
            if seg.kind == "f":
                edge, loop = self.state.frames[seg.id].branches[seg.n].edge, -1
            else:
                edge, loop = -1, self.state.loops[seg.id].loop
            scope = next(
                i for i, s in enumerate(self.graph.scopes) if s.parent == scope and s.edge == edge and s.loop == loop
            )
        return scope

    def _deliver(self, node: Node, edge: Edge, path: Path, item: str) -> None:
        """An edge has brought a token (or, "", a skip) to a node here."""
        key = f"{node.id}|{path_key(path)}"
        slot = self.state.slots.get(key)
        if slot is None:
            slot = self.state.slots[key] = Slot(node=node.id, path=list(path))
            self.state.places.setdefault(scope_key(path), []).append(key)
        slot.items.setdefault(edge.ordinal, []).append(item)
        waited = self._waited(node, path)
        if any(not slot.items.get(ordinal) for ordinal in waited):
            return
        if node.join == "edges":
            self._try_join(node, slot, waited)
        elif all(entry == "" for ordinal in waited for entry in slot.items[ordinal]):
            self._forget_slot(key)
            self._skip_node(node, path)

    def _try_join(self, node: Node, slot: Slot, waited: Sequence[int]) -> None:
        taken = [(ordinal, slot.items[ordinal].pop(0)) for ordinal in waited]
        if not any(slot.items.values()):
            self._forget_slot(f"{node.id}|{path_key(slot.path)}")
        real = [(ordinal, self.state.tokens[item]) for ordinal, item in taken if item]
        if not real:
            self._skip_node(node, slot.path)
            return
        inputs = {self.graph.edges[ordinal].source: token.value for ordinal, token in real}
        seen: dict[str, Seen] = {}
        for _, token in real:
            for name, past in token.seen.items():
                known = seen.get(name)
                if known is None or past.visit >= known.visit:
                    seen[name] = past
        joined = Token(
            id=derive("join", node.id, path_key(slot.path), *(token.id for _, token in real)),
            node=node.id,
            path=list(slot.path),
            value=Raw(_encode(inputs)),
            edge=real[-1][0],
            sender=real[-1][1].sender,
            seen=seen,
        )
        self.make(joined)
        for _, token in real:
            self.consume(token)
        self._activate(joined, node)

    def _forget_slot(self, key: str) -> None:
        slot = self.state.slots.pop(key, None)
        if slot is not None:
            place = self.state.places.get(scope_key(slot.path))
            if place is not None and key in place:
                place.remove(key)

    def _skip_others(self, path: Path, node: Node | None, taken: set[int], *, opened: bool) -> None:
        if node is None:
            others = [ordinal for ordinal in self.graph.start if ordinal not in taken]
        else:
            exhausted = node.repeat.exhausted if node.repeat is not None else []
            others = sorted(o for tier in node.tiers for o in tier if o not in taken)
            others = sorted([*others, *(o for o in exhausted if o not in taken)])
        for ordinal in others:
            self._skip_edge(self.graph.edges[ordinal], path)
        if node is not None and node.opening and node.closed_by and not opened:
            self._skip_node(self.graph.nodes[node.closed_by], path)

    def _skip_edge(self, edge: Edge, path: Path) -> None:
        """A skip is sent along an edge; it enters no loop and no frame, and appears behind them."""
        if edge.kind == "back" or edge.opens:
            return
        if path and path[-1].kind == "l" and self.state.loops[path[-1].id].loop in edge.exits:
            return
        node = self.graph.nodes[edge.to]
        if node.fan_in is not None:
            return
        if node.join == "edges" or len(self._waited(node, path)) > 1:
            self._deliver(node, edge, path, "")
        else:
            self._skip_node(node, path)

    def _skip_node(self, node: Node, path: Path) -> None:
        if node.heads:
            self._skip_exits(node.heads[0], (), path)
            return
        for ordinal in sorted(o for tier in node.tiers for o in tier):
            self._skip_edge(self.graph.edges[ordinal], path)
        if node.opening and node.closed_by:
            self._skip_node(self.graph.nodes[node.closed_by], path)

    def _skip_exits(self, loop: int, taken: Sequence[int], path: Path) -> None:
        """The ways out of a loop that nobody took, as seen from around it."""
        for ordinal in self.graph.loops[loop].exits:
            edge = self.graph.edges[ordinal]
            if ordinal in taken or not edge.exits or edge.exits[-1] != loop:
                continue
            self._skip_edge(edge, path)

    # --- settling -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """All consequences of scopes that ran empty: deepest first, oldest first, until nothing changes."""
        while self._empty:
            key, seg = max(self._empty.items(), key=lambda item: self._urgency(item[1]))
            del self._empty[key]
            if seg.kind == "l":
                self._end_loop(seg.id)
            else:
                self._settle_branch(seg)

    def _urgency(self, seg: Seg) -> tuple[int, int, int]:
        if seg.kind == "l":
            run = self.state.loops.get(seg.id)
            return (len(run.path), -run.made, 0) if run is not None else (-1, 0, 0)
        frame = self.state.frames.get(seg.id)
        return (len(frame.path), -frame.made, -seg.n) if frame is not None else (-1, 0, 0)

    def _end_loop(self, loop_id: str) -> None:
        run = self.state.loops.get(loop_id)
        if run is None or run.live:
            return
        del self.state.loops[loop_id]
        self._forget_place(f"l{loop_id}")
        self._skip_exits(run.loop, run.taken, run.path)

    def _forget_place(self, scope: str) -> None:
        for key in self.state.places.pop(scope, []):
            self.state.slots.pop(key, None)

    def _settle_branch(self, seg: Seg) -> None:
        frame = self.state.frames.get(seg.id)
        branch = frame.branches.get(seg.n) if frame is not None else None
        if frame is None or branch is None or branch.live or branch.status != "open":
            return
        self._forget_place(f"f{seg.id}.{seg.n}")
        frame.settled += 1
        if branch.parked:
            branch.status = "arrived"
            branch.result = Raw(_encode(branch_output(self.state, frame, seg.n)))
            frame.arrived.append(seg.n)
        else:
            branch.status = "ended"
        self._start_queued(frame, branch.edge)
        self._judge(frame, just=seg.n)

    def _start_queued(self, frame: Frame, ordinal: int) -> None:
        queue = frame.queues.get(ordinal)
        if queue and not (frame.fired and self._early(frame) == "cancel"):
            token = self.state.tokens[queue.pop(0)]
            token.mode = "ready"
            self.arrive(token, self.graph.edges[ordinal])

    def _early(self, frame: Frame) -> str:
        fan_in = self.graph.nodes[frame.fan_in].fan_in
        return fan_in.early if fan_in is not None else "cancel"

    def _judge(self, frame: Frame, just: int | None = None) -> None:
        """Whether a frame's fan-in fires, fails or waits."""
        unsettled = frame.total - frame.settled
        if not frame.fan_in or frame.fired:
            if frame.fired and just is not None and self._early(frame) == "late_merge":
                self._merge_late(frame, just)
            if not unsettled:
                self._forget_frame(frame)
            return
        need = self.graph.nodes[frame.fan_in].fan_in.need  # type: ignore[union-attr]
        if need.kind == "all":
            if not unsettled:
                self._fire(frame)
            return
        wanted = need.of(frame.total)
        if len(frame.arrived) + unsettled < wanted:
            self._not_enough(frame, wanted)
        elif len(frame.arrived) == wanted:
            self._fire(frame)

    def _fire(self, frame: Frame) -> None:
        node = self.graph.nodes[frame.fan_in]
        assert node.fan_in is not None
        value = self._merge(frame, node)
        seen = dict(frame.seen)
        for index in sorted(frame.arrived):
            for token_id in frame.branches[index].parked:
                for name, past in self.state.tokens[token_id].seen.items():
                    known = seen.get(name)
                    if known is None or past.visit >= known.visit:
                        seen[name] = past
        joined = Token(
            id=derive("fired", frame.id),
            node=node.id,
            path=list(frame.path),
            value=value,
            seen=seen,
            missing=frame.settled - len(frame.arrived),
        )
        self.make(joined)
        for index in frame.arrived:
            for token_id in list(frame.branches[index].parked):
                self.consume(self.state.tokens[token_id])
        frame.fired = True
        self._weigh(frame.path, -1)
        if frame.total - frame.settled:
            if node.fan_in.early == "cancel":
                self.drop_frame(frame)
            else:
                self._detach(frame)
        else:
            self._forget_frame(frame)
        self._activate(joined, node)

    def _merge(self, frame: Frame, node: Node) -> Raw:
        """The merged value, written to its target in the opener's scope."""
        assert node.fan_in is not None
        merge = node.fan_in.merge
        order = frame.arrived if merge is not None and merge.how == "last_wins" else sorted(frame.arrived)
        outputs = [(index, _decode(frame.branches[index].result)) for index in order]
        if merge is None:
            return Raw(_encode([value for _, value in outputs]))
        value = merged(merge, outputs)
        self.write_here(frame.path, merge.into.path, value, anywhere=merge.into.scope == "state")
        return Raw(_encode(value))

    def _merge_late(self, frame: Frame, just: int) -> None:
        """A branch came after the fan-in fired: all that arrived is merged again, while the target's scope is open."""
        node = self.graph.nodes[frame.fan_in]
        branch = frame.branches[just]
        if branch.status == "arrived" and self._is_open(frame.path):
            self._merge(frame, node)
        for token_id in list(branch.parked):
            if token_id in self.state.tokens:
                self.consume(self.state.tokens[token_id])

    def _is_open(self, path: Path) -> bool:
        return all((seg.id in (self.state.frames if seg.kind == "f" else self.state.loops)) for seg in path)

    def write_here(self, path: Path, to: Sequence[str], value: Any, *, anywhere: bool) -> None:
        """Write to the innermost branch's output if there is one, else to the state."""
        seg = None if anywhere else innermost_branch(path)
        frame = self.state.frames.get(seg.id) if seg is not None else None
        if seg is None or frame is None:
            write(self.state.data, to, value)
            return
        branch = frame.branches[seg.n]
        if branch.writes is None:
            branch.writes = {}
        write(branch.writes, to, value)

    # --- failing and dropping -------------------------------------------------------------------------------------

    def _not_enough(self, frame: Frame, wanted: int) -> None:
        failure = Failure(
            type="not_enough",
            message=f"{frame.fan_in} needs {wanted} of {frame.total} branches, {len(frame.arrived)} arrived",
            code="not_enough",
            step=frame.fan_in,
        )
        self._fail_fan_in(frame, failure)

    def _fail_fan_in(self, frame: Frame, failure: Failure) -> None:
        """The frame is over, and its fan-in node fails in the opener's scope."""
        failed = Token(
            id=derive("failed", frame.id), node=frame.fan_in, path=list(frame.path), seen=frame.seen, error=failure
        )
        self.make(failed)
        self._weigh(frame.path, -1)
        self.drop_frame(frame)
        self._wake(failed, "failing")

    def raise_failure(self, token: Token, failure: Failure) -> Failure | None:
        """An unrouted failure goes along the path, inside out; the answer fails the run."""
        for seg in reversed(token.path):
            frame = self.state.frames.get(seg.id) if seg.kind == "f" else None
            if frame is None or (not frame.fan_in and not frame.fired):
                continue
            if not frame.fired and self.graph.nodes[frame.fan_in].fan_in.need.kind == "all":  # type: ignore[union-attr]
                self._fail_fan_in(frame, failure)
                return None
            self._drop_branch(frame, seg.n, failure)
            return None
        return failure

    def _drop_branch(self, frame: Frame, index: int, failure: Failure) -> None:
        branch = frame.branches[index]
        self._drop_members(frame, index)
        if branch.status == "open":
            frame.settled += 1
        branch.status = "failed"
        frame.failed[index] = failure
        self._empty.pop(f"f{frame.id}.{index}", None)
        self._forget_place(f"f{frame.id}.{index}")
        self._start_queued(frame, branch.edge)
        self._judge(frame)

    def drop_frame(self, frame: Frame) -> None:
        """Everything in it vanishes."""
        self._drop_members(frame, None)
        self._forget_frame(frame)

    def _drop_members(self, frame: Frame, index: int | None) -> None:
        for token_id in list(frame.members):
            token = self.state.tokens.get(token_id)
            if token is not None and (index is None or Seg("f", frame.id, index) in token.path):
                self.drop(token)
        for inner_id in list(frame.frames):
            inner = self.state.frames.get(inner_id)
            if inner is not None and (index is None or Seg("f", frame.id, index) in inner.path):
                if inner.fan_in and not inner.fired:
                    self._weigh(inner.path, -1)
                self.drop_frame(inner)
        for loop_id in list(frame.loops):
            run = self.state.loops.get(loop_id)
            if run is not None and (index is None or Seg("f", frame.id, index) in run.path):
                del self.state.loops[loop_id]
                self._empty.pop(f"l{loop_id}", None)
                self._forget_place(f"l{loop_id}")

    def _detach(self, frame: Frame) -> None:
        """What still runs belongs to the run alone: nobody around it waits for it any more."""
        around = len(frame.path)
        for token_id in list(frame.members):
            token = self.state.tokens.get(token_id)
            if token is None:
                continue
            self._count(token.path[:around], -1, token.id)
            token.path = token.path[around:]
        for inner_id in frame.frames:
            inner = self.state.frames.get(inner_id)
            if inner is not None:
                if inner.fan_in and not inner.fired:
                    self._weigh(inner.path[:around], -1)
                inner.path = inner.path[around:]
        for loop_id in frame.loops:
            run = self.state.loops.get(loop_id)
            if run is not None:
                run.path = run.path[around:]

    def _forget_frame(self, frame: Frame) -> None:
        self.state.frames.pop(frame.id, None)
        for index in frame.branches:
            self._empty.pop(f"f{frame.id}.{index}", None)
            self._forget_place(f"f{frame.id}.{index}")
        outer = innermost_branch(frame.path)
        holder = self.state.frames.get(outer.id) if outer is not None else None
        if holder is not None and frame.id in holder.frames:
            holder.frames.remove(frame.id)
