"""A graph run on the table: the decider alone, its tasks answered in any order, as the golden cases say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.conditions import compile_condition, compile_expression, compile_template
from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import PerformTask
from weft.core.graph.hosted import AgentCall, AgentOrder, NodeTask
from weft.core.graph.machine import GraphMachine
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import GraphState, innermost_branch
from weft.core.graph.ways import Ways
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.errors import Failure

ONCE = e.Policy(attempts_max=1)


class Reader:
    """The real language."""

    def condition(self, source: Any, bindings: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        verdict = compile_condition(source).evaluate(bindings)
        return verdict.value, dict(verdict.seen)

    def expression(self, source: str, bindings: Mapping[str, Any]) -> Any:
        return compile_expression(source).evaluate(bindings)

    def template(self, source: Any, bindings: Mapping[str, Any]) -> Any:
        return compile_template(source).evaluate(bindings)


class Program:
    """A graph whose steps are tried once."""

    def __init__(self, graph: GraphModel) -> None:
        self.graph = graph
        self.ways = Ways(graph)
        self.reader = Reader()

    def at(self, version: str) -> Program:
        return self

    def task(self, node: str) -> NodeTask:
        return NodeTask(ONCE)

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> Raw:
        return Raw(b"{}")

    def version_of(self, workflow: str) -> tuple[str, e.Style]:
        return "1", "code"

    def agent_call(self, order: AgentOrder) -> AgentCall:
        return AgentCall("weft.agent", "1", b"{}")


class Table:
    """One run, played by hand."""

    def __init__(self, graph: GraphModel, given: Any) -> None:
        self.machine = self.new_machine(graph)
        self.log: list[e.AnyEvent] = []
        self.open: dict[int, PerformTask] = {}
        self.now = 1_000
        start = c.StartRun(run_id="run", workflow=graph.name, input=Raw(msgspec.json.encode(given)), style="graph")
        self.tell(start)

    def new_machine(self, graph: GraphModel) -> GraphMachine:
        return GraphMachine(Program(graph), GraphState(uid="0" * 32))

    @property
    def state(self) -> GraphState:
        return self.machine.state

    def env(self) -> Env:
        return Env(now=self.now, check=lambda *_: None)

    def tell(self, command: c.AnyCommand) -> None:
        self.take(self.machine.decide(command, self.env()))
        while events := self.machine.follow(self.env()):
            self.take(events)

    def take(self, events: Sequence[e.AnyEvent]) -> None:
        for event in events:
            self.machine.evolve(event, at=self.now)
            self.log.append(event)
            for effect in self.machine.effects(event):
                if isinstance(effect, PerformTask):
                    self.open[effect.task] = effect
        self.open = {number: effect for number, effect in self.open.items() if number in self.state.tasks}

    def place(self, number: int) -> tuple[str, int | None]:
        """The node of a task, and the index of its innermost branch."""
        token = self.state.tokens[self.state.by_task[number]]
        branch = innermost_branch(token.path)
        return token.node, branch.n if branch is not None else None

    def _is_at(self, number: int, node: str, index: int | None) -> bool:
        here, branch = self.place(number)
        return here == node and (index is None or branch == index)

    def answer(self, number: int, steps: Mapping[str, Any], calls: Counter[str]) -> None:
        effect = self.open.pop(number)
        node, _ = self.place(number)
        given = msgspec.json.decode(effect.input)
        reply = _reply(steps.get(node, {"*": {"output": {}}}), given, calls[node])
        calls[node] += 1
        if "error" in reply:
            failure = Failure(type=reply["error"], message=reply["error"], step=node)
            self.tell(c.ReportTaskFailed(EntryId(number), effect.attempt, effect.delivery, failure, False))
        else:
            output = Raw(msgspec.json.encode(reply["output"]))
            self.tell(c.ReportTaskSucceeded(EntryId(number), effect.attempt, effect.delivery, output))

    def play(self, case: Mapping[str, Any], seed: int) -> None:
        """Answer everything: what ``order`` names in that order first, the rest as the seed draws it."""
        draw = random.Random(seed)
        calls: Counter[str] = Counter()
        for node, index in case.get("order", []):
            number = next((n for n in self.open if self._is_at(n, node, index)), None)
            if number is not None:
                self.answer(number, case["steps"], calls)
        for _ in range(100_000):
            if self.state.over:
                return
            if self.state.timers and not self.open:
                number, due = min(self.state.timers.items(), key=lambda item: item[1])
                self.now = max(self.now, due)
                self.tell(c.FireTimer(EntryId(number)))
                continue
            assert self.open, f"{self.state.status} with nothing to run for: {self.state.tokens}"
            self.answer(draw.choice(sorted(self.open)), case["steps"], calls)


def _reply(behaviour: Any, given: Any, call: int) -> Mapping[str, Any]:
    if isinstance(behaviour, list):
        found: Mapping[str, Any] = behaviour[min(call, len(behaviour) - 1)]
        return found
    if "echo" in behaviour:
        return {"output": given}
    if "by_input" in behaviour:
        return next(reply for asked, reply in behaviour["by_input"] if asked == given)
    return behaviour["*"]  # type: ignore[no-any-return]
