"""Apply a patch to the state of a graph run: rename, instruct, mend the slots, then let everything settle. Pure.

The same code works the patch out, on a copy, and applies its event. Rules: docs/internals/patches.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.graph.game import Game
from weft.core.graph.model import Edge, GraphModel, Node
from weft.core.graph.patch.repeated import evolve_repeated
from weft.core.graph.patch.static_scopes import StaticScopes, name_of
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
    path_key,
    scope_key,
)
from weft.core.patch_events import FRAME
from weft.core.run import undo
from weft.core.run.composites import leaf

Steps = list[tuple[str, str, int]]


def path_steps(path: Path) -> Steps:
    """Return a path as an event holds it."""
    return [(seg.kind, seg.id, seg.n) for seg in path]


def path_of(steps: Steps) -> Path:
    """Return the path that an event holds."""
    return [Seg(kind, name, n) for kind, name, n in steps]  # type: ignore[arg-type]


class PatchGame(Game):
    """The game of the new graph, on a state that the old graph has made."""

    def __init__(self, old: GraphModel, new: GraphModel, state: GraphState) -> None:
        super().__init__(new, state)
        self._old = old
        self.fired: list[str] = []
        """The joins and fan-ins that the patch starts."""
        self._concluding = False

    def apply(self, event: e.RunPatched) -> None:
        """Apply a whole patch."""
        self.adopt(event)
        evolve_repeated(self.state, event)
        self.instruct(event)
        self.mend(event.slots)
        self.conclude()

    # --- names ----------------------------------------------------------------------------------------------------

    def adopt(self, event: e.RunPatched) -> None:
        """Give everything its name in the new graph."""
        state = self.state
        names = _Names(self._old, self.graph, event)
        for token in state.tokens.values():
            names.token(token)
        for frame in state.frames.values():
            names.frame(frame)
        for run in state.loops.values():
            names.loop(run)
        self._adopt_slots(names)
        state.newest = {names.node(name): made for name, made in state.newest.items()}
        state.letters = {
            token: msgspec.structs.replace(letter, node=names.node(letter.node))
            for token, letter in state.letters.items()
        }
        self._write_fields_and_outputs(event)

    def _adopt_slots(self, names: _Names) -> None:
        state = self.state
        slots, moved = {}, {}
        state.places = {}
        for key, slot in state.slots.items():
            names.slot(slot)
            now = f"{slot.node}|{path_key(slot.path)}"
            moved[f"s{key}"] = f"s{now}"
            slots[now] = slot
            state.places.setdefault(scope_key(slot.path), {})[now] = True
        state.slots = slots
        for slot in slots.values():
            self._drop_notes(slot)
        state.deadlines = {timer: moved.get(key, key) for timer, key in state.deadlines.items()}
        state.unarmed = [moved.get(key, key) for key in state.unarmed]
        for token in state.tokens.values():
            if token.slot:
                token.slot = moved.get(f"s{token.slot}", f"s{token.slot}")[1:]

    def _drop_notes(self, slot: Slot) -> None:
        """Keep only waiting tokens and skips at an edge join. At a plain node the slot also notes who has come."""
        node = self.graph.nodes.get(slot.node)
        if node is None or node.join != "edges":
            return
        for edge, items in slot.items.items():
            slot.items[edge] = [item for item in items if not item or self._is_joining(item)]

    def _is_joining(self, token: str) -> bool:
        return token in self.state.tokens and self.state.tokens[token].mode == "joining"

    def _write_fields_and_outputs(self, event: e.RunPatched) -> None:
        """Write what the patch sets, add fields that are new, and recall outputs that are named only now."""
        state = self.state
        for name, schema in ((self.graph.state or {}).get("properties") or {}).items():
            default = schema.get("default") if isinstance(schema, dict) else None
            state.data.setdefault(name, default)
        for path, value in event.state.items():
            self.write_here([], path.split("."), leaf(Raw(msgspec.json.encode(value))), anywhere=True)
        for name, outputs in event.recalled.items():
            holder = state.frames.get(name.removeprefix(FRAME)) if name.startswith(FRAME) else state.tokens.get(name)
            if holder is not None:
                recalled = {node: Seen(visit, output) for node, (visit, output) in outputs.items()}
                holder.seen = {**recalled, **holder.seen}

    # --- instructions ---------------------------------------------------------------------------------------------

    def instruct(self, event: e.RunPatched) -> None:
        """Move, drop and start tokens."""
        for one in event.tokens:
            match one.do:
                case "reroute":
                    self.reroute(one)
                case "drop":
                    self._remove_token(self.state.tokens[one.token])
                case "move":
                    old = self.state.tokens[one.token]
                    self._put_token(one, seen=old.seen, value=one.value or old.value)
                    self._remove_token(old)
                case "start":
                    self._put_token(one, seen={}, value=one.value or e.NULL)

    def _remove_token(self, token: Token) -> None:
        """End a token, with its dead letter. Work that must end first is undone afterwards, if it can be."""
        self.state.letters.pop(token.id, None)
        if token.mode == "joining":
            self._leave_slot(token)
        if token.mode == "queued":
            self._leave_queue(token)
        if token.id in self.state.agenda:
            self.state.agenda.remove(token.id)
        self.drop(token)
        if self._ending:
            ending, self._ending = self._ending, []
            undo.drop_work(self.state, ending, lambda _: False, since=self.state.seq)

    def _leave_slot(self, token: Token) -> None:
        slot = self.state.slots.get(f"{token.node}|{path_key(token.path)}")
        for items in slot.items.values() if slot is not None else ():
            if token.id in items:
                items.remove(token.id)

    def _leave_queue(self, token: Token) -> None:
        for seg in token.path:
            frame = self.state.frames.get(seg.id)
            for queue in frame.queues.values() if frame is not None else ():
                if token.id in queue:
                    queue.remove(token.id)

    def _put_token(self, one: e.TokenPatch, *, seen: dict[str, Seen], value: Raw) -> None:
        """Put a token at a node: it works there, or arrives over an edge if the node is a join."""
        node = self.graph.nodes[one.node]
        token = Token(
            id=one.to,
            node=node.id,
            path=path_of(one.path),
            value=value,
            seen=seen,
            edge=one.edge,
            sender=self.graph.edges[one.edge].source if one.edge else "",
            earlier=one.earlier,
        )
        self.make(token)
        if one.edge:
            self.arrive(token, self.graph.edges[one.edge])
            return
        last = token.path[-1] if token.path else None
        loop = self.state.loops[last.id].loop if last is not None and last.kind == "l" else ""
        self._activate_token(token, node, inside=loop if loop in node.heads else "")

    def _deliver_token(self, node: Node, edge: Edge, path: Path, item: str) -> None:
        # A join is looked at when all instructions are carried out.
        if node.join == "edges" and item and not self._concluding:
            key = f"{node.id}|{path_key(path)}"
            slot = self.state.slots.get(key)
            if slot is None:
                slot = self.state.slots[key] = Slot(node=node.id, path=list(path))
                self.state.places.setdefault(scope_key(path), {})[key] = True
            slot.items.setdefault(edge.name, []).append(item)
            return
        super()._deliver_token(node, edge, path, item)

    def reroute(self, one: e.TokenPatch) -> None:
        """Let a waiting token take the place of another edge of its join."""
        token = self.state.tokens[one.token]
        slot = self.state.slots[f"{token.node}|{path_key(token.path)}"]
        slot.items[token.edge].remove(token.id)
        if not slot.items[token.edge]:
            del slot.items[token.edge]
        slot.items.setdefault(one.edge, []).append(token.id)
        token.edge = one.edge

    # --- slots ----------------------------------------------------------------------------------------------------

    def mend(self, slots: Iterable[e.SlotPatch]) -> None:
        """Put skips for what cannot come any more, and take back skips of what can come again."""
        for one in slots:
            path = path_of(one.path)
            key = f"{one.node}|{path_key(path)}"
            if one.forget:
                self._forget_slot(key)
                continue
            slot = self.state.slots.get(key)
            if slot is None:
                slot = self.state.slots[key] = Slot(node=one.node, path=path)
                self.state.places.setdefault(scope_key(path), {})[key] = True
            if one.anew:
                slot.ran = False
                tokens = self.state.tokens
                slot.items = {
                    edge: [item for item in items if not item or item in tokens] for edge, items in slot.items.items()
                }
            for edge in one.unskip:
                slot.items[edge].remove("")
                if not slot.items[edge]:
                    del slot.items[edge]
            for edge in one.skip:
                slot.items.setdefault(edge, []).append("")
            slot.ran = slot.ran or one.ran
            if not slot.ran and not slot.owed and not any(slot.items.values()):
                self._forget_slot(key)

    # --- consequences ---------------------------------------------------------------------------------------------

    def conclude(self) -> None:
        """Fire joins that are complete now, judge open frames, start queued branches, and settle.

        A run that has failed does all this when it is retried.
        """
        if self.state.over:
            return
        self._concluding = True
        for run in [run for run in self.state.loops.values() if not run.live]:
            self._end_emptied(run)
        for slot in list(self.state.slots.values()):
            self._look_at_slot(slot)
        for frame in list(self.state.frames.values()):
            if frame.fan_in and not frame.fired and frame.id in self.state.frames:
                self._look_at_frame(frame)
        for frame in list(self.state.frames.values()):
            self._start_waiting(frame)
        self.settle()

    def _look_at_slot(self, slot: Slot) -> None:
        node = self.graph.nodes.get(slot.node)
        key = f"{slot.node}|{path_key(slot.path)}"
        if self.state.slots.get(key) is not slot:
            return
        if node is None or node.fan_in is not None:
            self._forget_slot(key)
            return
        waited = self._edges_waited_for(node, slot.path)
        if node.join == "edges":
            while waited and all(slot.items.get(edge) for edge in waited):
                if not any(slot.items[edge][0] for edge in waited):
                    break
                self.fired.append(node.id)
                self._try_join(node, slot)
            return
        for token in [
            self.state.tokens[item] for items in slot.items.values() for item in items if self._is_joining(item)
        ]:
            self.fired.append(node.id)
            self._activate_token(token, node)

    def _look_at_frame(self, frame: Frame) -> None:
        fan_in = self.graph.nodes[frame.fan_in].fan_in
        assert fan_in is not None
        if fan_in.need.kind != "all":
            self._keep_first(frame, fan_in.need.of(frame.total))
        self._judge_fan_in(frame)

    def _fire_fan_in(self, frame: Frame) -> None:
        self.fired.append(frame.fan_in)
        super()._fire_fan_in(frame)

    def _keep_first(self, frame: Frame, wanted: int) -> None:
        """Of more arrivals than are needed now, keep the first."""
        for index in frame.arrived[wanted:]:
            branch = frame.branches[index]
            branch.status = "ended"
            for token in [self.state.tokens[token_id] for token_id in branch.parked]:
                self.consume(token)
            branch.parked = []
        del frame.arrived[wanted:]

    def _start_waiting(self, frame: Frame) -> None:
        """Start queued branches up to the present width."""
        for name, queue in list(frame.queues.items()):
            edge = self.graph.edges.get(name)
            if edge is None:
                continue
            open_ = sum(branch.status == "open" and branch.edge == name for branch in frame.branches.values())
            room = open_ if not edge.width else max(0, edge.width - (open_ - len(queue)))
            for _ in range(min(room, len(queue))):
                self._start_queued(frame, name)

    def _end_emptied(self, run: LoopRun) -> None:
        """End a loop from which all tokens were moved away. The slots behind it know what still comes from there."""
        del self.state.loops[run.id]
        holder = self._branch_around(run.path)
        if holder is not None:
            holder.loops.pop(run.id, None)
        self._forget_place(f"l{run.id}")


class _Names:
    """The new names of everything."""

    def __init__(self, old: GraphModel, new: GraphModel, event: e.RunPatched) -> None:
        self._old, self._new = old, new
        self._event = event
        self._scopes: StaticScopes | None = None

    def node(self, name: str) -> str:
        return self._event.nodes.get(name, name)

    def edge(self, name: str) -> str:
        return self._event.edges.get(name, name)

    def token(self, token: Token) -> None:
        token.node, token.sender, token.edge = self.node(token.node), self.node(token.sender), self.edge(token.edge)
        token.seen = self._rename_seen(token.seen)
        if token.mode == "queued" and token.edge in self._new.edges:
            token.node = self._new.edges[token.edge].to  # it begins at the head of its branch, whatever that is now

    def _rename_seen(self, seen: dict[str, Seen]) -> dict[str, Seen]:
        return {self.node(name): past for name, past in seen.items()} if self._event.nodes else seen

    def frame(self, frame: Frame) -> None:
        if frame.fired and frame.rule is None and frame.fan_in in self._old.nodes:
            was, now = self._old.nodes[frame.fan_in].fan_in, self._new.nodes.get(self.node(frame.fan_in))
            frame.rule = was if now is not None and was != now.fan_in else None
        if frame.scope:
            frame.scope = self._rename_scope(frame.scope)
        frame.opener, frame.fan_in = self.node(frame.opener), self.node(frame.fan_in)
        frame.seen = self._rename_seen(frame.seen)
        frame.queues = {self.edge(name): queue for name, queue in frame.queues.items()}
        for branch in frame.branches.values():
            self._rename_branch(branch)

    def _rename_branch(self, branch: Branch) -> None:
        branch.edge = self.edge(branch.edge)
        branch.newest = {self.node(name): made for name, made in branch.newest.items()}
        if branch.kept is None:
            return
        for token in branch.kept.tokens:
            self.token(token)
        for frame in branch.kept.frames:
            self.frame(frame)
        for run in branch.kept.loops:
            self.loop(run)
        for slot in branch.kept.slots.values():
            self.slot(slot)
        branch.kept.slots = {f"{slot.node}|{path_key(slot.path)}": slot for slot in branch.kept.slots.values()}

    def _rename_scope(self, name: str) -> str:
        if self._scopes is None:
            self._scopes = StaticScopes(self._old)
        levels = self._scopes.named(name)
        loops = self._event.loops
        return name_of(tuple((kind, self.edge(x) if kind == "f" else loops.get(x, x)) for kind, x in levels))

    def loop(self, run: LoopRun) -> None:
        run.loop = self._event.loops.get(run.loop, run.loop)
        run.taken = [self.edge(name) for name in run.taken]

    def slot(self, slot: Slot) -> None:
        slot.node = self.node(slot.node)
        slot.items = {self.edge(name): items for name, items in slot.items.items()}
        slot.owed = {self.edge(name): count for name, count in slot.owed.items()}


def remembered_edges(state: GraphState) -> set[str]:
    """Return the names of all edges that a run remembers."""
    found: set[str] = set()
    _remember_edges(found, state.tokens.values(), state.frames.values(), state.loops.values(), state.slots.values())
    return found


def _remember_edges(
    found: set[str], tokens: Iterable[Token], frames: Iterable[Frame], loops: Iterable[LoopRun], slots: Iterable[Slot]
) -> None:
    found.update(token.edge for token in tokens if token.edge)
    found.update(name for run in loops for name in run.taken)
    found.update(name for slot in slots for name in (*slot.items, *slot.owed))
    for frame in frames:
        found.update(frame.queues)
        for branch in frame.branches.values():
            found.add(branch.edge)
            kept = branch.kept
            if kept is not None:
                _remember_edges(found, kept.tokens, kept.frames, kept.loops, kept.slots.values())
