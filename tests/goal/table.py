"""A goal run on the table: the decider alone, its work answered by hand in any order, as the golden cases say.

It plays the shell exactly as the machine's contract says and checks, after every command, what must always hold: the
effects issued less those answered are what is outstanding, and a run that goes on has something to go on for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from tests.goal.documents import Program
from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, EndRun, OutgoingMail, PerformTask, StopTask
from weft.core.goal.inputs import assemble_inputs
from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import GoalPlan, encode_plan
from weft.core.goal.seed_names import seed_names
from weft.core.goal.state import GoalState
from weft.core.ids import EntryId
from weft.core.run.env import Env, MissingInputs, PastEvent, keep_inline
from weft.core.unfold import ViewEvent, unfold
from weft.errors import Failure
from weft.runtime.schema_check import check_schema

UID = "0" * 32
Decided = TypeVar("Decided")
Command = tuple[str, str, int | str]
"""What may come next: work, retry, accepted (its time is over), deadline, undo; of a step; of an item or fact."""


class Table:
    """One run, played by hand."""

    def __init__(
        self, plan: GoalPlan, given: Mapping[str, Any], *, program: Program | None = None, uid: str = UID
    ) -> None:
        self.program = program or Program()
        self.machine = GoalMachine(self.program, GoalState(uid=uid))
        self.log: list[tuple[e.AnyEvent, int]] = []
        self.letters: list[OutgoingMail] = []
        self.tasks: dict[int, PerformTask] = {}
        self.timers: dict[int, int] = {}
        self.blobs: dict[str, bytes] = {}
        self.ended = False
        self.now = 1_000
        self.lua: Callable[[str, dict[str, Any]], Any] = lambda source, bindings: True
        self.keep: Callable[[bytes], Raw] | None = None
        self.answers: Counter[tuple[str, int]] = Counter()
        self.store: dict[str, bytes] = {}
        """Blobs that are not in memory yet."""
        self.handed_out: dict[tuple[str, int], PerformTask] = {}
        self.ignored = 0
        self.way: list[Any] = []
        start = c.StartGoal(
            run_id="run", workflow="goal", input=Raw(msgspec.json.encode(given)), plan=Raw(encode_plan(plan))
        )
        self.tell(start)

    @property
    def state(self) -> GoalState:
        return self.machine.state

    @property
    def events(self) -> list[e.AnyEvent]:
        return [event for event, _ in self.log]

    @property
    def told(self) -> list[ViewEvent]:
        """The log as views have it."""
        return [event for record in self.events for event in unfold(record)]

    @property
    def names(self) -> list[str]:
        return [name for event in self.told for name in seed_names(event)]

    def env(self) -> Env:
        return Env(now=self.now, check=check_schema, blob=self.blobs.get, log=self.past, keep=self.keep or keep_inline)

    def past(self) -> list[PastEvent]:
        return [PastEvent(at, event) for event, at in self.log]

    def tell(self, command: c.AnyCommand) -> int:
        """Decide a command and all that follows; how many events the command itself caused."""
        events = self.with_inputs(lambda: self.machine.decide(command, self.env()))
        self.take(events)
        self.go_on()
        self.check()
        return len(events)

    def with_inputs(self, decide: Callable[[], Decided]) -> Decided:
        """Decide, and bring what the decision lacks."""
        for _ in range(1_000):
            try:
                return decide()
            except MissingInputs as wanting:
                self._bring(wanting)
        raise AssertionError("it never has all inputs")

    def go_on(self) -> None:
        for _ in range(200_000):
            try:
                events = self.machine.follow(self.env())
            except MissingInputs as wanting:
                self._bring(wanting)
                continue
            if not events:
                return
            self.take(events)
        raise AssertionError("it never comes to rest")

    def _bring(self, wanting: MissingInputs) -> None:
        assert not wanting.blobs or any(digest not in self.blobs for digest in wanting.blobs)
        assert wanting.blobs or wanting.questions
        for digest in wanting.blobs:
            self.blobs[digest] = self.store[digest]
        for asked in wanting.questions:
            self.program.reader.asked.append(asked)
            try:
                found = self.lua(asked.source, msgspec.json.decode(asked.values))
            except Exception as error:
                found = error
            self.program.reader.answers[asked] = found

    def take(self, events: Sequence[e.AnyEvent]) -> None:
        for decided in events:
            event = e.decode(e.encode(decided))
            self.machine.evolve(event, at=self.now)
            self.log.append((event, self.now))
            self._answered(event)
            for effect in self.machine.effects(event):
                self._issue(effect)
            self.letters.extend(self.machine.mail(event))

    def _answered(self, event: e.AnyEvent) -> None:
        match event:
            case e.TaskSucceeded(task=n) | e.TaskFailed(task=n) | e.TaskLost(task=n) | e.WorkAccepted(task=n):
                self.tasks.pop(n, None)
                self.timers.pop(n, None)
            case e.TimerFired(timer=n) | e.DeadlinePassed(timer=n) | e.WaitTimedOut(wait=n) | e.AskAnswered(ask=n):
                self.timers.pop(n, None)
            case e.ChildEnded(child=n):
                self.timers.pop(n, None)
            case e.RunPaused():
                self.tasks.clear()
            case e.RunEnding():
                self.timers.pop(0, None)
            case e.RunRetried():
                self.ended = False

    def _issue(self, effect: AnyEffect) -> None:
        match effect:
            case PerformTask(task=number):
                self.tasks[number] = effect
            case ArmTimer(entry=number, due=due):
                self.timers[number] = due
            case StopTask(task=number):
                self.tasks.pop(number, None)
            case DisarmTimer(entry=number):
                self.timers.pop(number, None)
            case EndRun():
                self.ended = True
                self.tasks.clear()
                self.timers.clear()

    def check(self) -> None:
        """Compare what is open with what the world was asked for: docs/internals/engine.md#rule-10."""
        outstanding = self.machine.outstanding()
        assert {x.task: x for x in outstanding if isinstance(x, PerformTask)} == self.tasks
        assert {x.entry: x.due for x in outstanding if isinstance(x, ArmTimer)} == self.timers
        state = self.state
        assert self.ended == state.over
        if not state.over and state.status != "paused":
            assert self.tasks or self.timers or state.asks or state.children, f"{state.status} with nothing to run for"

    # --- answering ------------------------------------------------------------------------------------------------

    def place(self, number: int) -> tuple[str, int]:
        place = self.state.places[number]
        return place.step, place.index

    def number(self, step: str, index: int) -> int:
        run = self.state.steps.get(step)
        return run.open.get(index, 0) if run is not None else 0

    def open_commands(self) -> list[Command]:
        """Everything that the world could do next."""
        found: list[Command] = []
        for number in self.tasks:
            task = self.state.tasks[number]
            if task.undo_of:
                found.append(("undo", task.step, number))
            else:
                found.append(("work", *self.place(number)))
        for number in self.timers:
            if number in self.state.deadlines:
                window = self.state.deadlines[number]
                found.append(("deadline", window.step, window.fact))
            elif number in self.state.accepted:
                found.append(("late", *self.place(number)))
            elif number in self.state.parked:
                found.append(("retry", *self.place(number)))
        found += [("confirm", *self.place(number)) for number in self.state.asks if number in self.state.parked]
        return sorted(found, key=str)

    def run(self, command: Sequence[Any], behaviour: Mapping[str, Any]) -> bool:
        """One command of the world; whether it decided anything."""
        match command:
            case ["work", step, index]:
                return self._work(step, index, behaviour)
            case ["retry" | "late", step, index]:
                return self._fire(self.number(step, index))
            case ["confirm", step, index]:
                return self.tell(c.DecideAsk(self.number(step, index), approved=True)) > 0
            case ["deadline", step, fact]:
                return self._fire(self.state.steps[step].windows.get(fact, 0))
            case ["undo", _, number]:
                effect = self.tasks[number]
                return self.tell(c.ReportTaskSucceeded(effect.task, effect.attempt, effect.delivery)) > 0
            case ["cancel"]:
                return self.tell(c.CancelRun("cancelled")) > 0
        raise AssertionError(command)

    def _fire(self, number: int) -> bool:
        due = self.state.timers.get(number)
        if due is None:
            return bool(number) and self.tell(c.FireTimer(EntryId(number))) > 0
        self.now = max(self.now, due)
        return self.tell(c.FireTimer(EntryId(number))) > 0

    def _work(self, step: str, index: int, behaviour: Mapping[str, Any]) -> bool:
        number = self.number(step, index)
        effect = self.tasks.get(number)
        if effect is None:
            # Somebody answers for work that is not live: the report of a hand-out that is gone.
            known = self.handed_out.get((step, index))
            return known is not None and self.report(known, {"output": {}}) > 0
        self.handed_out[step, index] = effect
        reply = _reply(behaviour.get(step, {"output": {}}), index, self.answers[step, index])
        self.answers[step, index] += 1
        return self.report(effect, reply) > 0

    def report(self, effect: PerformTask, reply: Mapping[str, Any]) -> int:
        at = (effect.task, effect.attempt, effect.delivery)
        if "never" in reply:
            return self.tell(c.ReportWorkAccepted(*at))
        if "error" in reply or "retry" in reply:
            text = reply.get("error") or reply["retry"]
            failure = Failure(type="Error", message=text, attributes=dict(reply.get("attributes", {})))
            return self.tell(c.ReportTaskFailed(*at, failure, "retry" in reply))
        return self.tell(c.ReportTaskSucceeded(*at, Raw(msgspec.json.encode(reply["output"]))))

    def play(self, behaviour: Mapping[str, Any], *, order: Sequence[Any] | None = None, seed: int = 0) -> int:
        """Exactly these commands, or all there are in drawn order; how many decided nothing."""
        if order is not None:
            for command in order:
                self._remember()
                self.ignored += not self.run(command, behaviour)
            return self.ignored
        draw = random.Random(seed)
        for _ in range(100_000):
            if self.state.over:
                return self.ignored
            self._remember()
            self.run(draw.choice(self.open_commands()), behaviour)
        raise AssertionError("it does not end")

    def _remember(self) -> None:
        for number, effect in self.tasks.items():
            if number in self.state.places:
                self.handed_out[self.place(number)] = effect

    # --- looking --------------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        return {name: msgspec.json.decode(values[0].value) for name, values in self.state.facts.items()}

    def statuses(self) -> dict[str, str]:
        return {step: run.status for step, run in self.state.steps.items()}

    def inputs(self) -> dict[str, Any]:
        return {
            event.step: msgspec.json.decode(assemble_inputs(event.inputs, event.facts, self.state.facts))
            for event in self.events
            if isinstance(event, e.StepStarted)
        }

    def result(self) -> Any:
        return msgspec.json.decode(self.state.output)["result"] if self.state.status == "completed" else None

    def error(self) -> str | None:
        if self.state.status == "cancelled":
            return self.state.cancelled
        return self.state.failure.message if self.state.failure is not None else None

    def replayed(self) -> GoalMachine:
        """The same run, folded again from its log."""
        machine = GoalMachine(self.program, GoalState(uid=self.state.uid))
        for event, at in self.log:
            machine.evolve(event, at=at)
        return machine


def _reply(behaviour: Any, index: int, attempt: int) -> Mapping[str, Any]:
    if isinstance(behaviour, Mapping) and "items" in behaviour:
        items = behaviour["items"]
        behaviour = items[min(index, len(items) - 1)]
    if isinstance(behaviour, list):
        behaviour = behaviour[min(attempt, len(behaviour) - 1)]
    return behaviour  # type: ignore[no-any-return]
