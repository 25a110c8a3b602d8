"""The token game: apply the consequences of moves. Pure. No condition is evaluated here.

A move changes the state in place and records which scopes may be empty now. ``settle`` then applies all consequences,
deepest scope first. The rules are in docs/internals/graph.md#3-events.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from heapq import heappop
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.events import Taken
from weft.core.graph import kept_branches
from weft.core.graph.merge import add_late_branch, begin_late_merge, branch_output, merge_outputs, read_path, write_path
from weft.core.graph.model import FanIn, Merge, Node
from weft.core.graph.moves import Moves, merge_seen
from weft.core.graph.tokens import (
    Branch,
    Frame,
    GraphState,
    Path,
    Seg,
    Slot,
    Token,
    innermost_branch,
    path_key,
)
from weft.core.ids import derive
from weft.core.run import undo
from weft.core.run.composites import compose, has_marks, leaf
from weft.errors import Failure

FAILURES_LISTED_MAX = 10
"""The failure of a fan-in lists the failures of this many branches at most."""


class Game(Moves):
    """Moves and their consequences on one state. Lives while one event is applied."""

    def emit(self, token: Token, node: Node | None, taken: Sequence[Taken], output: Raw, *, skips: bool) -> None:
        """Leave a node by these edges. If the node is a fan-in that failed, its frame is over."""
        if token.frame:
            self._drop_failed_frame(token.frame)
        if token.slot in self.state.slots:
            for _, item in self.close_slot(self.state.slots[token.slot]):
                if item:
                    self.consume(self.state.tokens[item])
        super().emit(token, node, taken, output, skips=skips)

    # --- settling -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Apply the consequences of empty scopes, deepest first, then oldest first, until nothing changes."""
        while self._opened or self._empty:
            if self._opened:
                self._judge_fan_in(self._opened.pop(0))
                continue
            key = heappop(self._order)[-1]
            seg = self._empty.pop(key, None)
            if seg is None:
                continue
            if seg.kind == "l":
                self._end_loop(seg.id)
            else:
                self._settle_branch(seg)
        if self.state.unarmed:
            self.state.unarmed = [key for key in self.state.unarmed if self._is_waiting(key)]

    def _is_waiting(self, key: str) -> bool:
        """Return whether a join with a deadline still waits."""
        if key[0] == "f":
            frame = self.state.frames.get(key[1:])
            return frame is not None and not frame.fired
        slot = self.state.slots.get(key[1:])
        return slot is not None and has_arrived(slot)

    def waiting_joins(self) -> list[str]:
        """Return the joins that wait with a deadline."""
        nodes = self.graph.nodes
        frames = [f for f in self.state.frames.values() if f.fan_in and f.arrived and not f.fired]
        found = [f"f{frame.id}" for frame in frames if nodes[frame.fan_in].deadline is not None]
        for key, slot in self.state.slots.items():
            # A patch of a failed run can have removed the node. Its slot is forgotten when the run goes on.
            node = nodes.get(slot.node)
            if node is not None and node.deadline is not None and has_arrived(slot):
                found.append(f"s{key}")
        return found

    def stop_waiting(self) -> None:
        """Stop the deadlines of all joins because the run is over."""
        for key in list(self.state.deadlines.values()):
            self.disarm(self.state.frames[key[1:]] if key[0] == "f" else self.state.slots[key[1:]])

    def wait_again(self, mended: Container[str]) -> None:
        """Restart the deadlines of all joins for a retry of the run.

        Failures of joins that timed out are removed, and so are failures of joins that have branches again.
        """
        for token in list(self.state.tokens.values()):
            late = token.slot or (token.frame and _is_late(token.failure))
            if token.mode == "failing" and (late or token.frame in mended):
                self.consume(token)
        self.state.deadlines = {}
        for frame in self.state.frames.values():
            frame.timer = 0
        for slot in self.state.slots.values():
            slot.timer = 0
        self.state.unarmed = self.waiting_joins()

    def _end_loop(self, loop_id: str) -> None:
        run = self.state.loops.get(loop_id)
        if run is None or run.live:
            return
        del self.state.loops[loop_id]
        holder = self._branch_around(run.path)
        if holder is not None:
            holder.loops.pop(loop_id, None)
        self._forget_place(f"l{loop_id}")
        self._skip_exits(run.loop, run.taken, run.path)

    def _branch_around(self, path: Path) -> Branch | None:
        seg = innermost_branch(path)
        frame = self.state.frames.get(seg.id) if seg is not None else None
        return frame.branches.get(seg.n) if frame is not None and seg is not None else None

    def _forget_place(self, scope: str) -> None:
        for key in self.state.places.pop(scope, ()):
            slot = self.state.slots.pop(key, None)
            if slot is not None:
                self.disarm(slot)

    def _settle_branch(self, seg: Seg) -> None:
        frame = self.state.frames.get(seg.id)
        branch = frame.branches.get(seg.n) if frame is not None else None
        if frame is None or branch is None or branch.live or branch.status != "open":
            return
        self._forget_place(f"f{seg.id}.{seg.n}")
        frame.settled += 1
        if branch.parked:
            branch.status = "arrived"
            branch.result = branch_output(self.state, frame, seg.n)
            frame.arrived.append(seg.n)
        else:
            branch.status = "ended"
        self._start_queued(frame, branch.edge)
        self._judge_fan_in(frame, just=seg.n)
        if branch.status == "arrived" and not frame.fired and frame.id in self.state.frames:
            self._await_branches(frame)

    def _await_branches(self, frame: Frame) -> None:
        """Request the deadline of a fan-in, which begins at its first arrival."""
        node = self.graph.nodes.get(frame.fan_in)
        key = f"f{frame.id}"
        if node is not None and node.deadline is not None and not frame.timer and key not in self.state.unarmed:
            self.state.unarmed.append(key)

    def time_out(self, key: str) -> None:
        """Let a join whose deadline has passed continue with the tokens that have arrived, or fail."""
        frame = self.state.frames.get(key[1:]) if key[0] == "f" else None
        slot = self.state.slots.get(key[1:]) if key[0] == "s" else None
        if frame is not None and not frame.fired and derive("failed", frame.id) not in self.state.tokens:
            self._time_out_frame(frame)
        elif slot is not None:
            self._time_out_slot(slot, key[1:])

    def _time_out_frame(self, frame: Frame) -> None:
        node = self.graph.nodes[frame.fan_in]
        self.disarm(frame)
        if node.deadline is not None and node.deadline.proceeds and frame.arrived:
            self._fire_fan_in(frame)
            return
        count = f"{len(frame.arrived)} of {frame.total} branches"
        self._fail_fan_in(frame, _timeout_failure(node.id, count))

    def _time_out_slot(self, slot: Slot, key: str) -> None:
        node = self.graph.nodes[slot.node]
        self.disarm(slot)
        if node.deadline is not None and node.deadline.proceeds:
            self._try_join(node, slot)
            return
        waited = self._edges_waited_for(node, slot.path)
        real = [(o, self.state.tokens[slot.items[o][0]]) for o in waited if slot.items.get(o) and slot.items[o][0]]
        missing = [self.graph.edges[o].source for o in waited if not slot.items.get(o)]
        failed = Token(
            id=derive("late", key, *(token.id for _, token in real)),
            node=node.id,
            path=list(slot.path),
            value=self._join_value(real),
            seen=merge_seen(token for _, token in real),
            failure=_timeout_failure(node.id, f"nothing from {', '.join(missing)}"),
            mode="failing",
            slot=key,
        )
        self.make(failed)
        self._enter_loops(failed, node)
        self.state.agenda.insert(0, failed.id)

    def _start_queued(self, frame: Frame, edge: str) -> None:
        queue = frame.queues.get(edge)
        if queue and not (frame.fired and self._early_policy(frame) == "cancel"):
            first = queue.pop(0)
            if first.startswith(kept_branches.WAITING):
                self._continue_branch(frame.branches[int(first[1:])])
                return
            token = self.state.tokens[first]
            token.mode = "ready"
            self.arrive(token, self.graph.edges[edge])

    def _continue_branch(self, branch: Branch) -> None:
        """Continue a branch that a retry restored and that may work now."""
        for token in [self.state.tokens[token_id] for token_id in branch.members]:
            if token.mode in ("ready", "routing", "failing") and not kept_branches.waits_for_width(self.state, token):
                self.state.agenda.append(token.id)

    def _early_policy(self, frame: Frame) -> str:
        fan_in = self._fan_in_rule(frame)
        return fan_in.early if fan_in is not None else "cancel"

    def _fan_in_rule(self, frame: Frame) -> FanIn | None:
        """Return the fan-in that closes a frame. One that has fired keeps the rule under which it fired."""
        return frame.rule or self.graph.nodes[frame.fan_in].fan_in

    def _judge_fan_in(self, frame: Frame, just: int | None = None) -> None:
        """Decide whether the fan-in of a frame fires, fails or keeps waiting."""
        unsettled = frame.total - frame.settled
        if not frame.fan_in or frame.fired:
            if frame.fired and just is not None:
                self._arrive_late(frame, just)
            if not unsettled:
                self._end_late(frame)
                self._forget_frame(frame)
            return
        need = self.graph.nodes[frame.fan_in].fan_in.need  # type: ignore[union-attr]
        if need.kind == "all":
            if not unsettled:
                self._fire_fan_in(frame)
            return
        wanted = need.of(frame.total)
        if len(frame.arrived) + unsettled < wanted:
            self._fail_with_too_few(frame, wanted)
        elif len(frame.arrived) == wanted:
            self._fire_fan_in(frame)

    def _fire_fan_in(self, frame: Frame) -> None:
        node = self.graph.nodes[frame.fan_in]
        assert node.fan_in is not None
        value = self._merge_branches(frame, node)
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
        self.disarm(frame)
        self._count_waiting_frame(frame.path, -1)
        if frame.total - frame.settled:
            if node.fan_in.early == "cancel":
                self._drop_frame(frame, [n for n, branch in frame.branches.items() if branch.status == "open"])
            else:
                self._detach_open_branches(frame)
        else:
            self._forget_frame(frame)
        self._activate_token(joined, node)

    def _merge_branches(self, frame: Frame, node: Node) -> Raw:
        """Merge the branch outputs and write the result to its target in the scope of the opener."""
        fan_in = self._fan_in_rule(frame)
        assert fan_in is not None
        merge = fan_in.merge
        order = frame.arrived[-1:] if merge is not None and merge.how == "last_wins" else sorted(frame.arrived)
        outputs = [(index, leaf(frame.branches[index].result)) for index in order]
        if merge is None:
            return compose([value for _, value in outputs])
        value = merge_outputs(merge, outputs)
        raw = compose(value)
        if fan_in.early == "late_merge":
            self._merged_value_holder(frame, merge).newest[node.id] = frame.made
        self.write_here(frame.path, merge.into.path, leaf(raw), anywhere=merge.into.scope == "state")
        return raw

    def _arrive_late(self, frame: Frame, just: int) -> None:
        """Handle a branch that settles after the fan-in fired.

        With ``late_merge`` everything that arrived is merge_outputs again, while the scope of the target is open and
        nothing newer has written the target.
        """
        branch = frame.branches[just]
        if branch.status == "arrived" and self._early_policy(frame) == "late_merge" and self._is_open(frame.path):
            self._merge_late(frame, just)
        for token_id in list(branch.parked):
            if token_id in self.state.tokens:
                self.consume(self.state.tokens[token_id])

    def _merge_late(self, frame: Frame, just: int) -> None:
        """Merge everything that arrived again. If the target still has the previous merge, only add the last branch."""
        node = self.graph.nodes[frame.fan_in]
        fan_in = self._fan_in_rule(frame)
        merge = fan_in.merge if fan_in is not None else None
        if merge is None:
            return
        path = merge.into.path
        holder = self._merged_value_holder(frame, merge)
        if holder.newest.get(node.id, 0) > frame.made:
            return  # a later frame has written the target
        if holder.merging.get(path[0]) == frame.id:
            data = _data_of(holder)
            added = add_late_branch(merge, frame, read_path(data, path), just)
            if added is not None:
                value, marked = added
                write_path(data, path, value)
                self.state.marked = self.state.marked or (marked and holder is self.state)
                return
        self._merge_branches(frame, node)
        begin_late_merge(merge, frame)
        holder.merging[path[0]] = frame.id

    def _end_late(self, frame: Frame) -> None:
        """Finish late merging when all branches have settled: put the fields of an object in order of index."""
        node = self.graph.nodes.get(frame.fan_in)
        fan_in = self._fan_in_rule(frame) if node is not None else None
        merge = fan_in.merge if fan_in is not None else None
        if node is None or merge is None or not frame.order or not self._is_open(frame.path):
            return
        holder = self._merged_value_holder(frame, merge)
        if holder.merging.get(merge.into.path[0]) == frame.id:
            del holder.merging[merge.into.path[0]]
            if merge.how != "append":
                self._merge_branches(frame, node)

    def _is_open(self, path: Path) -> bool:
        """Return whether all branches on a path are open.

        Loops are ignored, because their writes outlive their rounds.
        """
        for seg in path:
            if seg.kind == "f":
                frame = self.state.frames.get(seg.id)
                if frame is None or frame.branches[seg.n].status != "open":
                    return False
        return True

    def _merged_value_holder(self, frame: Frame, merge: Merge) -> GraphState | Branch:
        """Return the state or branch that the merged value of a frame is written to."""
        return self._data_holder(frame.path, anywhere=merge.into.scope == "state")

    def write_here(self, path: Path, to: Sequence[str], value: Any, *, anywhere: bool) -> None:
        """Write to the output of the innermost branch, or to the state if there is none."""
        holder = self._data_holder(path, anywhere=anywhere)
        holder.merging.pop(to[0], None)
        write_path(_data_of(holder), to, value)
        if holder is self.state:
            self.state.marked = self.state.marked or has_marks(value)

    def _data_holder(self, path: Path, *, anywhere: bool) -> GraphState | Branch:
        seg = None if anywhere else innermost_branch(path)
        frame = self.state.frames.get(seg.id) if seg is not None else None
        return self.state if seg is None or frame is None else frame.branches[seg.n]

    # --- failing and dropping -------------------------------------------------------------------------------------

    def _fail_with_too_few(self, frame: Frame, wanted: int) -> None:
        """Fail a fan-in because too few branches can still arrive. The frame stays until the failure is handled."""
        if derive("failed", frame.id) not in self.state.tokens:
            self._fail_fan_in(frame, not_enough(frame, wanted, frame.failed))

    def _fail_fan_in(self, frame: Frame, failure: Failure) -> None:
        """Fail the fan-in node in the scope of the opener, before anything else happens."""
        failed = Token(
            id=derive("failed", frame.id),
            node=frame.fan_in,
            path=list(frame.path),
            seen=frame.seen,
            failure=failure,
            mode="failing",
            frame=frame.id,
        )
        self.make(failed)
        self._enter_loops(failed, self.graph.nodes[frame.fan_in])
        self.state.agenda.insert(0, failed.id)

    def _drop_failed_frame(self, frame_id: str) -> None:
        frame = self.state.frames.get(frame_id)
        if frame is not None:
            self._count_waiting_frame(frame.path, -1)
            self._drop_frame(frame, list(frame.branches))

    def raise_failure(self, token: Token, failure: Failure) -> Failure | None:
        """Raise an unhandled failure to the next frame around it.

        Returns the failure if there is no such frame, so that the run fails.
        """
        for seg in reversed(token.path):
            frame = self.state.frames.get(seg.id) if seg.kind == "f" else None
            if frame is not None and (frame.fan_in or frame.fired):
                self.take_failure(frame, seg.n, failure)
                return None
        return failure

    def take_failure(self, frame: Frame, index: int, failure: Failure) -> None:
        """Drop a failed branch if its frame can continue without it; otherwise fail the fan-in."""
        if not frame.fired and self.graph.nodes[frame.fan_in].fan_in.need.kind == "all":  # type: ignore[union-attr]
            self._fail_fan_in(frame, failure)
            self._drop_failed_frame(frame.id)
        else:
            self._drop_branch(frame, index, failure)

    def _drop_branch(self, frame: Frame, index: int, failure: Failure) -> None:
        branch = frame.branches[index]
        kept = None if frame.fired else kept_branches.copy_branch(self.state, frame, index)
        children = len(self.state.gone_children)
        self._drop_members(frame, index)
        if not self._undo_branches(frame, [index]) and len(self.state.gone_children) == children:
            branch.kept = kept
        if branch.status == "open":
            frame.settled += 1
        branch.status = "failed"
        frame.failed[index] = failure
        self._empty.pop(f"f{frame.id}.{index}", None)
        self._forget_place(f"f{frame.id}.{index}")
        self._start_queued(frame, branch.edge)
        self._judge_fan_in(frame)

    def _drop_frame(self, frame: Frame, lost: Sequence[int]) -> None:
        """Remove everything in a frame, and undo the work of the lost branches."""
        self._clear_frame(frame)
        self._undo_branches(frame, lost)

    def _clear_frame(self, frame: Frame) -> None:
        self._drop_members(frame, None)
        self._forget_frame(frame)

    def _undo_branches(self, frame: Frame, lost: Sequence[int]) -> bool:
        """Undo the completed work of these branches, once their open work has ended. Returns whether there is any."""
        keys = {f"{frame.id}.{index}" for index in lost}
        ending, self._ending = self._ending, []
        return undo.drop_work(self.state, ending, lambda undo: not keys.isdisjoint(undo.within), since=frame.since)

    def _drop_members(self, frame: Frame, index: int | None) -> None:
        for branch in list(frame.branches.values()) if index is None else [frame.branches[index]]:
            for token_id in list(branch.members):
                token = self.state.tokens.get(token_id)
                if token is not None:
                    self.drop(token)
            for inner_id in list(branch.frames):
                inner = self.state.frames.get(inner_id)
                if inner is None or inner.fired:
                    continue  # the remaining branches of a fired frame belong to the run
                if inner.fan_in:
                    self._count_waiting_frame(inner.path, -1)
                self._clear_frame(inner)
            for loop_id in list(branch.loops):
                del self.state.loops[loop_id]
                self._empty.pop(f"l{loop_id}", None)
                self._forget_place(f"l{loop_id}")
            branch.loops.clear()

    def _detach_open_branches(self, frame: Frame) -> None:
        """Detach the open branches of a frame, so that only the run waits for them."""
        around = len(frame.path)
        if not around:
            return
        frame.scope = self._static_scope(frame.path)
        self._detach_undo(frame)
        for branch in frame.branches.values():
            for token_id in branch.members:
                token = self.state.tokens[token_id]
                self._count_token(token.path[:around], -1, token_id)
                token.path = token.path[around:]
        self._shorten_paths(frame, around)

    def _detach_undo(self, frame: Frame) -> None:
        """Remove the branches around a detached frame from the undo records of its open branches."""
        state = self.state
        keys = {f"{frame.id}.{index}" for index, branch in frame.branches.items() if branch.status == "open"}
        tasks = [state.tasks.get(n) or state.parked.get(n) for n in self._tasks_in(frame)]
        for task in tasks:
            if task is not None:
                task.within = _branches_from(task.within, keys)
        for place in range(len(state.undo) - 1, -1, -1):
            undo = state.undo[place]
            if undo.done < frame.since:
                break
            if not keys.isdisjoint(undo.within):
                state.undo[place] = msgspec.structs.replace(undo, within=_branches_from(undo.within, keys))

    def _tasks_in(self, frame: Frame) -> list[int]:
        members = (token_id for branch in frame.branches.values() for token_id in branch.members)
        return [self.state.tokens[token_id].task for token_id in members]

    def _shorten_paths(self, frame: Frame, around: int) -> None:
        """Remove the beginning of all paths inside a detached frame."""
        for index, branch in frame.branches.items():
            self._shorten_slots(f"f{frame.id}.{index}", around)
            for loop_id in branch.loops:
                run = self.state.loops[loop_id]
                run.path = run.path[around:]
                self._shorten_slots(f"l{loop_id}", around)
            for inner_id in branch.frames:
                inner = self.state.frames[inner_id]
                if inner.fan_in and not inner.fired:
                    self._count_waiting_frame(inner.path[:around], -1)
                inner.path = inner.path[around:]
                if not inner.fired:
                    self._shorten_paths(inner, around)

    def _shorten_slots(self, scope: str, around: int) -> None:
        keys = self.state.places.pop(scope, None)
        if not keys:
            return
        place = self.state.places[scope] = {}
        for key in keys:
            slot = self.state.slots.pop(key)
            slot.path = slot.path[around:]
            shorter = f"{slot.node}|{path_key(slot.path)}"
            self.state.slots[shorter] = slot
            if slot.timer:
                self.state.deadlines[slot.timer] = f"s{shorter}"
            self.state.unarmed = [f"s{shorter}" if one == f"s{key}" else one for one in self.state.unarmed]
            place[shorter] = True

    def _forget_frame(self, frame: Frame) -> None:
        self.state.frames.pop(frame.id, None)
        self.disarm(frame)
        for index in frame.branches:
            self._empty.pop(f"f{frame.id}.{index}", None)
            self._forget_place(f"f{frame.id}.{index}")
        holder = self._branch_around(frame.path)
        if holder is not None:
            holder.frames.pop(frame.id, None)


def has_arrived(slot: Slot) -> bool:
    """Return whether a token waits in the slot."""
    return any(item for items in slot.items.values() for item in items)


def _is_late(failure: Failure | None) -> bool:
    return failure is not None and failure.code == "timed_out"


def _timeout_failure(node: str, arrived: str) -> Failure:
    return Failure(type="timed_out", message=f"{node} timed out with {arrived}", code="timed_out", step=node)


def not_enough(frame: Frame, wanted: int, failed: Mapping[int, Failure]) -> Failure:
    """Return the failure of a fan-in that too few branches can reach, with the failures of its branches."""
    last = list(failed.values())[-1:]
    return Failure(
        type="not_enough",
        message=f"{frame.fan_in} needs {wanted} of {frame.total} branches, {len(frame.arrived)} arrived",
        code="not_enough",
        step=frame.fan_in,
        attributes={
            "arrived": len(frame.arrived),
            "need": wanted,
            "total": frame.total,
            "failures": {str(index): failure.brief() for index, failure in list(failed.items())[:FAILURES_LISTED_MAX]},
        },
        cause=last[0].cause or last[0].brief() if last else "",
    )


def _branches_from(within: list[str], keys: set[str]) -> list[str]:
    """Return the branches starting at the first of these."""
    return within[next((place for place, key in enumerate(within) if key in keys), 0) :]


def _data_of(holder: GraphState | Branch) -> dict[str, Any]:
    if not isinstance(holder, Branch):
        return holder.data
    if holder.writes is None:
        holder.writes = {}
    return holder.writes
