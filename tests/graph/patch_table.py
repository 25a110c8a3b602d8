"""A graph run on the table that is patched: every version of its graph is known by its hash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from tests.graph.table import Program, Table
from weft.core import commands as c
from weft.core.graph.machine import GraphMachine, restore_state
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import GraphState
from weft.core.ids import EntryId
from weft.core.run.env import Env, PastEvent
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.patches import judge_patch
from weft.core.run.revisions import to_redo, to_undo
from weft.documents.json_patch import apply_operations
from weft.graphs.load import load_graph

FIRST = "1"


class VersionedProgram(Program):
    """One of several versions of a graph."""

    def __init__(self, graph: GraphModel, version: str, known: dict[str, VersionedProgram]) -> None:
        super().__init__(graph)
        self.version = version
        self.known = known
        known[version] = self

    def at(self, version: str) -> VersionedProgram:
        return self.known[version]


class PatchTable(Table):
    """One run, played by hand and patched."""

    uid = "0" * 32

    def __init__(self, document: Mapping[str, Any], given: Any) -> None:
        self.past: list[PastEvent] = []
        self.documents: dict[str, Any] = {FIRST: dict(document)}
        self.programs: dict[str, VersionedProgram] = {}
        self.calls: Counter[str] = Counter()
        super().__init__(load_graph(document).graph, given)

    def new_machine(self, graph: GraphModel) -> GraphMachine:
        return GraphMachine(VersionedProgram(graph, FIRST, self.programs), GraphState(uid=self.uid))

    def env(self) -> Env:
        return Env(now=self.now, check=lambda *_: None, log=lambda: self.past)

    def take(self, events: Any) -> None:
        for event in events:
            self.past.append(PastEvent(self.now, event))
        super().take(events)

    def prepare(self, patch: Mapping[str, Any], document: Any = None) -> c.PatchRun:
        source = document
        if source is None:
            source = apply_operations(self.documents[self.state.version], patch.get("ops", []))
        loaded = load_graph(source)
        version = loaded.hash[:16] if loaded.graph != self.programs[FIRST].graph else FIRST
        self.documents.setdefault(version, source)
        if version not in self.programs:
            VersionedProgram(loaded.graph, version, self.programs)
        fields = {name: value for name, value in patch.items() if value}
        return c.PatchRun(patch=Raw(msgspec.json.encode(fields)), base=self.state.version, version=version)

    def undoing(self, *, redo: bool = False) -> c.PatchRun:
        rev = to_redo(self.state) if redo else to_undo(self.state)
        revision = self.state.revisions[rev - 1]
        return c.PatchRun(patch=Raw(b"{}"), base=self.state.version, version=revision.base, undoes=rev)

    def judge(self, command: c.PatchRun) -> PatchPlan:
        return judge_patch(self.machine, command, self.env()).plan

    def finish(self, node: str, branch: int | None, steps: Mapping[str, Any]) -> None:
        number = next(n for n in sorted(self.open) if self._is_at(n, node, branch))
        self.answer(number, steps, self.calls)

    def copied(self) -> PatchTable:
        """Return a copy of the run, which is played on by itself."""
        other = PatchTable.__new__(PatchTable)
        other.documents, other.programs = self.documents, self.programs
        state = restore_state(self.machine.snapshot())
        other.machine = GraphMachine(self.programs[state.version], state)
        other.log, other.past, other.now = list(self.log), list(self.past), self.now
        other.open, other.calls = dict(self.open), Counter(self.calls)
        return other

    def refolded(self) -> GraphMachine:
        """Return the run, folded from its log."""
        machine = GraphMachine(self.programs[FIRST], GraphState(uid=self.uid))
        return self._folded(machine, 0)

    def folded_from(self, snapshot: bytes) -> GraphMachine:
        """Return the run, folded from a snapshot and from the part of its log that came after it."""
        state = restore_state(snapshot)
        return self._folded(GraphMachine(self.programs[state.version], state), state.seq)

    def _folded(self, machine: GraphMachine, seq: int) -> GraphMachine:
        for one in self.past[seq:]:
            machine.evolve(one.event, at=one.at)
        return machine


def explore(table: PatchTable, steps: Mapping[str, Any], *, limit: int = 400) -> list[PatchTable]:
    """Return the run at its end, for every order of the completions that are left."""
    ended: list[PatchTable] = []
    todo, seen = [table], set()
    while todo and len(ended) < limit:
        one = todo.pop()
        key = (msgspec.json.encode(_timeless(one.state)), tuple(sorted(one.calls.items())))
        if key in seen:
            continue
        seen.add(key)
        if one.state.over:
            ended.append(one)
            continue
        if not one.open and one.state.timers:
            number, due = min(one.state.timers.items(), key=lambda item: item[1])
            one.now = max(one.now, due)
            one.tell(c.FireTimer(EntryId(number)))
            todo.append(one)
            continue
        assert one.open, f"{one.state.status} with nothing to run for: {one.state.tokens}"
        for number in sorted(one.open):
            other = one.copied()
            other.answer(number, steps, other.calls)
            todo.append(other)
    return ended


def _timeless(state: GraphState) -> dict[str, Any]:
    fields = msgspec.json.decode(msgspec.json.encode(state))
    return {name: fields.get(name) for name in ("tokens", "frames", "loops", "slots", "data", "executed", "status")}
