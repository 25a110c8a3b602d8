"""Graph runs played at random on the pure machine, with everything that must hold looked at after every command.

What a task answers follows from the seed and from its token, not from when it answers: a token's name derives from its
causes, so that two orders of the same answers can be compared.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import ArmTimer, DisarmTimer, EndRun, PerformTask, StopTask
from weft.core.graph.hosted import NodeTask
from weft.core.graph.machine import GraphMachine
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import GraphState, Seg, innermost_branch
from weft.core.graph.ways import Ways
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.errors import Failure

UID = "0" * 32
ONCE = e.Policy(attempts_max=1)
COMMANDS_MAX = 20_000
ENV = Env(now=0, check=lambda *_: None)
LATER = Env(now=10**9, check=lambda *_: None)
"""When every timer is due."""

Answer = Callable[[str, str], dict[str, Any] | str]
"""What the task of a node and a token gives, or the name of its error."""


class Reader:
    """Reads only what the drawn graphs say: a name with a dot."""

    def condition(self, source: Any, bindings: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        return bool(self.expression(source, bindings)), {}

    def expression(self, source: str, bindings: Mapping[str, Any]) -> Any:
        name, _, field = source.partition(".")
        found = bindings[name]
        return found.get(field) if isinstance(found, dict) else None

    def template(self, source: Any, bindings: Mapping[str, Any]) -> Any:
        return None


class Program:
    def __init__(self, graph: GraphModel) -> None:
        self.graph = graph
        self.ways = Ways(graph)
        self.reader = Reader()

    def at(self, version: str) -> Program:
        return self

    def task(self, node: str) -> NodeTask:
        return NodeTask(ONCE)

    def version(self, workflow: str) -> tuple[str, e.Style]:
        return "1", "code"


def drawn_answers(seed: int, *, failing: float = 0.0, items_max: int = 3) -> Answer:
    """Answers that a token's name decides."""

    def answer(node: str, token: str) -> dict[str, Any] | str:
        draw = random.Random(int.from_bytes(blake2b(f"{seed}/{token}".encode(), digest_size=8).digest(), "big"))
        if draw.random() < failing:
            return draw.choice(["boom", "bang"])
        conditions = {f"k{index}": draw.random() < 0.5 for index in range(4)}
        return {**conditions, "again": draw.random() < 0.4, "items": list(range(draw.randint(0, items_max)))}

    return answer


class Play:
    """One run. ``open``: tasks and timers that were asked for and not answered or taken back."""

    program: type[Program] = Program

    def __init__(self, graph: GraphModel, answer: Answer, *, watched: bool = True) -> None:
        self.graph = graph
        self.machine = GraphMachine(self.program(graph), GraphState(uid=UID))
        self.answer = answer
        self.watched = watched
        self.log: list[e.AnyEvent] = []
        self.open: dict[int, PerformTask | ArmTimer] = {}
        self.handed_out: list[PerformTask] = []
        self.gone: set[str] = set()
        self.live: set[str] = set()
        self.snapshots: list[tuple[int, bytes]] = []
        self.tell(c.StartRun(run_id="run", workflow="drawn", input=Raw(b"{}"), style="graph"))

    @property
    def state(self) -> GraphState:
        return self.machine.state

    def tell(self, command: c.AnyCommand) -> None:
        events = self.machine.decide(command, LATER if isinstance(command, c.FireTimer) else ENV)
        while events:
            for event in events:
                self._take(event)
            events = self.machine.follow(ENV)
        if self.watched:
            check_counts(self.state)
            self._check_outstanding()
            assert self.state.over or self.open, f"nothing to run for: {self.state.tokens}"

    def _take(self, event: e.AnyEvent) -> None:
        self.machine.evolve(event, at=0)
        self.log.append(event)
        for effect in self.machine.effects(event):
            match effect:
                case PerformTask(task=number) | ArmTimer(entry=number):
                    self.open[number] = effect
                    if isinstance(effect, PerformTask):
                        self.handed_out.append(effect)
                case StopTask(task=number) | DisarmTimer(entry=number):
                    self.open.pop(number, None)
                case EndRun():
                    self.open.clear()
        if self.watched:
            if isinstance(event, e.RunRetried):
                self.gone -= set(self.state.tokens)
            self._check_tokens()

    def _check_tokens(self) -> None:
        """Every token is made once and consumed once; only a retry brings failed branches back."""
        now = set(self.state.tokens)
        assert not now & self.gone, "a token came back"
        self.gone |= self.live - now
        self.live = now

    def _check_outstanding(self) -> None:
        if self.state.over:
            return
        found = {effect.task if isinstance(effect, PerformTask) else effect.entry for effect in _asked(self.machine)}
        assert found == set(self.open)

    def numbers(self) -> list[int]:
        return sorted(self.open)

    def node_of(self, number: int) -> str:
        """Where a task stands."""
        return self.state.tokens[self.state.by_task[number]].node

    def reply_at(self, node: str) -> None:
        """Answer the one task of a node."""
        (number,) = (number for number in self.numbers() if self.node_of(number) == node)
        self.reply(number)

    def reply(self, number: int) -> None:
        """Answer one task, or let one timer fire."""
        asked = self.open.pop(number)
        if isinstance(asked, ArmTimer):
            self.tell(c.FireTimer(EntryId(number)))
            return
        given = self.answered(asked)
        if isinstance(given, str):
            failure = Failure(type=given, message=given)
            self.tell(c.ReportTaskFailed(EntryId(number), asked.attempt, asked.delivery, failure, False))
        else:
            output = Raw(msgspec.json.encode(given))
            self.tell(c.ReportTaskSucceeded(EntryId(number), asked.attempt, asked.delivery, output))

    def answered(self, asked: PerformTask) -> dict[str, Any] | str:
        """What a task gives, by its place."""
        node, _, token = asked.location.rpartition("/")
        return self.answer(node, token)

    def to_the_end(self, seed: int) -> Play:
        """Answer everything, in the order that the seed draws."""
        draw = random.Random(seed)
        for _ in range(COMMANDS_MAX):
            if self.state.over:
                return self
            if self.watched and draw.random() < 0.1:
                self.snapshots.append((len(self.log), self.machine.snapshot()))
            self.reply(draw.choice(self.numbers()))
        raise AssertionError("the run does not end")

    @property
    def code(self) -> str:
        """Why it failed, if it did."""
        failure = self.state.failure
        return (failure.code or failure.type) if failure is not None else ""

    def result(self) -> dict[str, Any]:
        """What does not depend on the order, where anything does not."""
        return {"status": self.state.status, "data": self.state.data, "executed": self.state.executed}


def _asked(machine: GraphMachine) -> list[PerformTask | ArmTimer]:
    return [effect for effect in machine.outstanding() if isinstance(effect, PerformTask | ArmTimer)]


def replayed(graph: GraphModel, log: Sequence[e.AnyEvent], snapshot: bytes | None = None) -> bytes:
    """The snapshot of a run whose events are folded again, from the beginning or from a snapshot on."""
    state = msgspec.json.decode(snapshot, type=GraphState) if snapshot is not None else GraphState(uid=UID)
    machine = GraphMachine(Program(graph), state)
    for event in log:
        machine.evolve(event, at=0)
    return machine.snapshot()


def check_counts(state: GraphState) -> None:
    """All counters are what counting gives, and frames add up."""
    branches: Counter[tuple[str, int]] = Counter()
    loops: Counter[str] = Counter()
    for token in state.tokens.values():
        own = innermost_branch(token.path) if token.mode == "parked" else None
        _weigh(token.path, branches, loops, without=own)
    for frame in state.frames.values():
        if frame.fan_in and not frame.fired:
            _weigh(frame.path, branches, loops)
    for run in state.loops.values():
        assert run.live == loops[run.id] > 0
    for frame in state.frames.values():
        counted = Counter(branch.status for branch in frame.branches.values())
        assert frame.total == len(frame.branches)
        assert counted["arrived"] == len(frame.arrived)
        assert frame.settled == frame.total - counted["open"]
        for index, branch in frame.branches.items():
            assert branch.live == branches[frame.id, index]
            assert (branch.live > 0) == (branch.status == "open")
    for slot in state.slots.values():
        known = (state.frames if seg.kind == "f" else state.loops for seg in slot.path)
        assert all(seg.id in table for seg, table in zip(slot.path, known, strict=True)), "a slot outlived its scope"


def _weigh(
    path: Sequence[Seg], branches: Counter[tuple[str, int]], loops: Counter[str], *, without: Seg | None = None
) -> None:
    for seg in path:
        if seg.kind == "l":
            loops[seg.id] += 1
        elif seg is not without:
            branches[seg.id, seg.n] += 1
