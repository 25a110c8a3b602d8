"""The code of one run without an engine: facts come in an order that a seed decides, and every turn is written down.

A turn is a command from outside and what the code then asked for, command by command. Cut between any two commands and
played again, the code must ask for exactly the rest of that turn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

import weft
from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.code.machine import CodeMachine
from weft.core.ids import EntryId, Seq
from weft.core.run.env import Env
from weft.runtime.run.driver import CodeDriver
from weft.runtime.schema_check import check_schema
from weft.steps.failures import failure_of

UID = "00112233445566778899aabbccddeeff"
BEGIN = 1_767_225_600_000
IDLE = frozenset({"paused", "held", "rolling_back", "completed", "failed", "cancelled"})
Batch = list[e.AnyEvent]


class Turn(NamedTuple):
    """What came from outside at a time, and what the code made of it."""

    at: int
    outside: Batch
    code: list[Batch]


class Stage:
    """See the module."""

    tolerant = False

    def __init__(self, app: weft.App, name: str = "flow") -> None:
        self.app = app
        self.name = name
        self.machine = CodeMachine.fresh(UID)
        self.driver: CodeDriver | None = None
        self.turns: list[Turn] = []
        self.now_ms = BEGIN
        self.messages = 0
        self._asked: list[Batch] = []

    # --- what the driver needs ------------------------------------------------------------------------------------

    def issue(self, command: c.Asked) -> None:
        self._asked.append(self._take(self.machine.decide(command, self._env())))

    def try_schedule(self, ask: c.ScheduleTask) -> None:
        """Leave every step to ``issue``."""

    def keep(self, raw: bytes, *, apart: bool = False) -> Raw:
        return Raw(values.seal(raw))

    def blob(self, digest: str) -> bytes | None:
        raise AssertionError("nothing is large on this stage")

    def now(self) -> int:
        return self.now_ms

    def new_id(self) -> str:
        return blake2b(b"%d" % self.machine.state.seq, digest_size=16).hexdigest()

    def emit(self, stream: str, raw: bytes, place: str, *, at_root: bool = False) -> None:
        """Output is no part of what is compared."""

    def is_new(self) -> bool:
        return False

    @property
    def committed_seq(self) -> Seq:
        return Seq(self.machine.state.seq)

    def drop_from(self, entry: EntryId) -> None:
        raise AssertionError("no fork is on this stage")

    def hold_other_input(self, location: str, entry: EntryId, asked: bytes, where: str) -> None:
        self.issue(c.HoldRun("code.diverged", f"other arguments at {location}", location))

    # --- playing --------------------------------------------------------------------------------------------------

    def give(self, command: c.AnyCommand) -> None:
        """A command from outside, and what follows from it."""
        outside = self._take(self.machine.decide(command, self._env()))
        self._asked = []
        if outside:
            self.move()
            self.turns.append(Turn(self.now_ms, outside, self._asked))

    def move(self) -> list[Batch]:
        """Let the code hear what is new; what it asks for."""
        state = self.machine.state
        if self.driver is None and state.started and not state.ended and state.status not in IDLE:
            program = self.app.registered.find_program(self.name, "1")
            assert program is not None
            self.driver = CodeDriver(self.machine, program, self)
        if self.driver is not None and state.status not in IDLE:
            self.driver.advance()
        if state.status == "held":
            self.driver = None
        while following := self.machine.follow(self._env()):
            self._asked.append(self._take(following))
        return self._asked

    def close(self) -> None:
        if self.driver is not None:
            self.driver.close()

    def _take(self, events: Sequence[e.AnyEvent]) -> Batch:
        for event in events:
            self.machine.evolve(event, at=self.now_ms)
        return list(events)

    def _env(self) -> Env:
        return Env(now=self.now_ms, check=check_schema)

    # --- the world ------------------------------------------------------------------------------------------------

    def perform(self, given: bytes, seed: int, *, cancel: bool = False) -> Stage:
        """Start a run and let the world answer in the seed's order, until the run is over or waits for ever."""
        chance = random.Random(seed)
        self.give(c.StartRun(run_id="run", workflow=self.name, input=Raw(given)))
        while not self.machine.state.over:
            choices = self._choices()
            if cancel and chance.random() < 0.1:
                choices = [c.CancelRun("enough")]
                cancel = False
            if not choices:
                break
            self.now_ms += chance.randrange(3)
            self.give(chance.choice(choices))
        self.close()
        return self

    def _choices(self) -> list[c.AnyCommand]:
        state = self.machine.state
        found: list[c.AnyCommand] = [self._report(number) for number in state.tasks]
        found += [self._fire(number, due) for number, due in state.timers.items()]
        found += [c.ReportChildEnded(EntryId(n), "completed", Raw(b'"grown"')) for n in state.children]
        for number, ask in state.asks.items():
            if ask.remind_at and ask.reminded < 2:
                found.append(self._fire(number, ask.remind_at))
            elif ask.on_timeout == "escalate" and ask.due:
                found.append(self._fire(number, ask.due))
            else:
                found += [c.NoteTold(number, "opened")] if not ask.told else []
                found.append(c.DecideAsk(EntryId(number), True, "ann", "", Raw(b'{"n":1}')))
        for number, wait in state.waits.items():
            found += self._message(wait.names)
            if wait.due:
                found.append(self._fire(number, wait.due))
        return found

    def _message(self, names: Sequence[str]) -> list[c.DeliverMessage]:
        if "never" in names:
            return []
        return [c.DeliverMessage(f"m{self.machine.state.arrived}", names[0] if names else "any", Raw(b"1"))]

    def _fire(self, number: int, due: int) -> c.FireTimer:
        self.now_ms = max(self.now_ms, due)
        return c.FireTimer(EntryId(number))

    def _report(self, number: int) -> c.AnyCommand:
        task = self.machine.state.tasks[number]
        where = (EntryId(number), task.attempt, task.delivery)
        try:
            output = msgspec.json.encode(self._result(number))
        except Exception as error:
            return c.ReportTaskFailed(*where, failure_of(error, step=task.step, attempts=task.attempt), retryable=False)
        return c.ReportTaskSucceeded(*where, Raw(output))

    def _result(self, number: int) -> Any:
        task = self.machine.state.tasks[number]
        if task.inline:
            assert self.driver is not None
            return self.driver.bodies[number]._fn()
        if task.undo_of:
            return None
        step = self.app.registered.find_step(task.step)
        assert step is not None
        body = step.fn(**step.signature.unpack(values.unseal(bytes(task.input)), what=step.name))
        try:
            body.send(None)
        except StopIteration as stopped:
            return stopped.value
        raise AssertionError("steps on this stage do not wait")


class Cut(NamedTuple):
    """A place between two commands of a recorded run, and what its code asked for next."""

    events: list[tuple[e.AnyEvent, int]]
    now_ms: int
    rest: list[Batch]


def cuts(turns: Sequence[Turn]) -> list[Cut]:
    """Every place at which an append may have ended."""
    found: list[Cut] = []
    past: list[tuple[e.AnyEvent, int]] = []
    for turn in turns:
        past = past + [(event, turn.at) for event in turn.outside]
        found.append(Cut(past, turn.at, turn.code))
        for n, batch in enumerate(turn.code, 1):
            past = past + [(event, turn.at) for event in batch]
            found.append(Cut(past, turn.at, turn.code[n:]))
    return found


def replayed(app: weft.App, cut: Cut, *, snapshot: bool = False, name: str = "flow") -> tuple[Stage, list[Batch]]:
    """The code of a run whose log ends there, taken up by another process: the stage, and what the code asks for."""
    stage = Stage(app, name)
    for event, at in cut.events:
        stage.machine.evolve(e.decode(e.encode(event)), at=at)
    if snapshot:
        stage.machine = CodeMachine.restore(stage.machine.snapshot())
    stage.now_ms = cut.now_ms
    asked = stage.move()
    stage.close()
    return stage, asked


def encoded(batches: Sequence[Batch]) -> list[list[bytes]]:
    return [[e.encode(event) for event in batch] for batch in batches]
