"""Random histories of a code run, as commands on the pure machine: what users, workers, clocks, runs and code may do.

A history is driven by a tape of numbers, so that hypothesis can shrink it and a seed can repeat it. The code keeps the
discipline of the driver: a place is asked once, losers are cancelled before their race is decided, the end is the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.budgets import Amounts, BudgetLimits, Cover
from weft.core.code.locations import location_key
from weft.core.code.machine import CodeMachine
from weft.core.code.patch import ReplayReport
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.errors import Failure, WeftError

H = TypeVar("H", bound="History")

UID = "0123456789abcdef0123456789abcdef"
FAILURE = Failure(type="OSError", message="down")
UNDO = e.UndoPlan(step="unwork", takes=["n", "result"])
BEGIN = 1_000_000


def check(schema: dict[str, Any], raw: bytes) -> str | None:
    """A stand-in for JSON Schema: a form must be an object."""
    return None if raw.startswith(b"{") else "not an object"


class Tape:
    """Numbers that decide; at its end it says so."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._at = 0

    @property
    def over(self) -> bool:
        return self._at >= len(self._numbers)

    def pick(self, count: int) -> int:
        if self.over:
            return 0
        self._at += 1
        return self._numbers[self._at - 1] % count

    def one(self, options: Sequence[Any]) -> Any:
        return options[self.pick(len(options))]


class History:
    """One run: its machine, its log, and every command that was given with what came of it."""

    def __init__(self) -> None:
        self.machine = CodeMachine.fresh(UID)
        self.now = BEGIN
        self.log: list[tuple[e.AnyEvent, int]] = []
        self.given: list[tuple[c.AnyCommand, bool]] = []
        self.statuses: list[tuple[str, str]] = []
        self.round = 0
        self.loop_n = 1
        self.race_n = 1
        self.messages = 0

    @property
    def state(self) -> Any:
        return self.machine.state

    def give(self, command: c.AnyCommand) -> Sequence[e.AnyEvent] | WeftError:
        """Decide a command and take its events in, and whatever must follow."""
        try:
            events = self.machine.decide(command, Env(now=self.now, check=check))
        except WeftError as refusal:
            self.given.append((command, False))
            return refusal
        self.given.append((command, bool(events)))
        self.take(events)
        while events and (following := self.machine.follow(Env(now=self.now, check=check))):
            self.take(following)
        return events

    def take(self, events: Sequence[e.AnyEvent]) -> None:
        for event in events:
            before = self.state.status if self.state.started else "new"
            self.machine.evolve(event, at=self.now)
            self.log.append((event, self.now))
            if before != self.state.status:
                self.statuses.append((before, self.state.status))
            self.after(event)

    def after(self, event: e.AnyEvent) -> None:
        """Called with every event that was just taken in."""

    @property
    def code_runs(self) -> bool:
        return self.state.started and not self.state.ended and self.state.status in ("running", "cancelling")


def start(tape: Tape) -> c.StartRun:
    parent = e.Parent(uid="parent", entry=7, run_id="boss") if tape.pick(2) else None
    return c.StartRun(
        run_id="run",
        workflow="flow",
        input=Raw(b"{}"),
        parent=parent,
        timeout_ms=tape.one([0, 500]),
        attributes={"a": 1},
        budget=None if parent is not None else BudgetLimits(limits={"tokens": 100, "calls": 9}),
    )


def play(history: H, tape: Tape) -> H:
    """Let things happen until the tape ends."""
    history.give(start(tape))
    while not tape.over:
        history.now += tape.one([0, 0, 1, 50, 400])
        step = tape.one(MOVES)
        if step in CODE_MOVES and not history.code_runs:
            continue
        step(history, tape)
    return history


# --- what code does ----------------------------------------------------------------------------------------------


def _place(history: History, tape: Tape, name: str) -> tuple[str, str, int]:
    loop = f"l#{history.loop_n}" if history.loop_n > 1 else "l"
    race = f"r#{history.race_n}" if history.race_n > 1 else "r"
    scope = tape.one(["", "", f"{loop}/~{history.round}/", f"{race}/x/", f"{race}/y/", "&0/"])
    n = 1
    while location_key(scope, name, n) in history.machine.index.keys:
        n += 1
    return scope, name, n


def ask_step(history: History, tape: Tape) -> None:
    effect = tape.one(["idempotent", "idempotent", "irreversible"])
    policy = e.Policy(attempts_max=tape.one([1, 3]), delay_ms=100, effect=effect)
    undo = tape.one([None, UNDO])
    place = _place(history, tape, tape.one(["s", "work"]))
    inline = tape.pick(3)
    cover = Cover(amounts=Amounts(tokens=9, calls=1)) if inline == 2 else None
    history.give(c.ScheduleTask(*place, "work", Raw(b'{"n":1}'), "d1", policy, undo, inline=bool(inline), cover=cover))


def ask_sleep(history: History, tape: Tape) -> None:
    history.give(c.SetTimer(*_place(history, tape, "t"), history.now + tape.one([0, 30, 300])))


def ask_messages(history: History, tape: Tape) -> None:
    names = tape.one([["m"], ["m", "k"], []])
    due = tape.one([0, history.now + 100])
    history.give(c.AwaitMessages(*_place(history, tape, "w"), names, tape.one([1, 2]), due, bool(tape.pick(2))))


def answer_message(history: History, tape: Tape) -> None:
    messages = [*history.state.requests, "m1"]
    history.give(c.AnswerMessage(*_place(history, tape, "answer"), tape.one(messages), Raw(b'"ok"')))


def ask_person(history: History, tape: Tape) -> None:
    form = tape.one([None, {"type": "object"}])
    due, on_timeout = tape.one([0, history.now + 100]), tape.one(["fail", "approve", "reject", "escalate"])
    of, quorum = tape.one([([], "any"), (["ann", "bob"], "all"), (["ann", "bob"], 2), (["role:x", "ann"], "all")])
    place = _place(history, tape, "q")
    escalate, remind_ms = ["eve"] if on_timeout == "escalate" else [], tape.one([0, 0, 60])
    history.give(
        c.OpenAsk(*place, "Sure?", form, Raw(b'"this"'), of, quorum, due, on_timeout, escalate, False, remind_ms)
    )


def ask_child(history: History, tape: Tape) -> None:
    due, awaited = tape.one([0, history.now + 100]), bool(tape.pick(2))
    place = _place(history, tape, "c")
    history.give(c.StartChild(*place, "child", "1", "code", Raw(b"{}"), "d2", tape.one(["", "mine"]), due, awaited))


def ask_value(history: History, tape: Tape) -> None:
    of, value = tape.one([("now", b"5"), ("random", b"0.5"), ("uuid", b'"x"'), ("version", b"2")])
    history.give(c.RecordValue(*_place(history, tape, of), of, Raw(value)))


def ask_attributes(history: History, tape: Tape) -> None:
    history.give(c.SetAttributes(*_place(history, tape, "set"), tape.one([{"a": 2}, {"a": None}, {"b": "x"}])))


def ask_turn(history: History, tape: Tape) -> None:
    history.round += 1
    history.give(c.TurnLoop("", "l", history.loop_n, history.round, Raw(b"%d" % history.round), tape.one([0, 1, 20])))


def ask_finish(history: History, tape: Tape) -> None:
    loop = f"l#{history.loop_n}" if history.loop_n > 1 else "l"
    cancel_below(history, f"{loop}/")
    history.give(c.FinishLoop("", "l", history.loop_n, history.round + 1, Raw(b'"done"')))
    history.loop_n += 1
    history.round = 0


def ask_race(history: History, tape: Tape) -> None:
    race = f"r#{history.race_n}" if history.race_n > 1 else "r"
    winner, loser = tape.one([("x", "y"), ("y", "x"), ("", "x")])
    for name in (loser, "y") if not winner else (loser,):
        cancel_below(history, f"{race}/{name}/")
    history.give(c.DecideRace("", "r", history.race_n, winner, [loser] if winner else ["x", "y"]))
    history.race_n += 1


def cancel_below(history: History, prefix: str) -> None:
    """The driver cancels what still waits there; a child that nobody awaits is let be."""
    for number, entry in list(history.state.entries.items()):
        if entry.status == "open" and entry.key.startswith(prefix) and entry.kind != "loop":
            history.give(c.CancelEntry(EntryId(number)))


def cancel_entry(history: History, tape: Tape) -> None:
    if history.state.entries:
        history.give(c.CancelEntry(EntryId(tape.one(list(history.state.entries)))))


def refuse_message(history: History, tape: Tape) -> None:
    taken = [n for n, entry in history.state.entries.items() if entry.kind == "receive" and entry.status == "done"]
    if taken:
        history.give(c.RefuseMessage(EntryId(tape.one(taken)), "m1", "not a number"))


def end_code(history: History, tape: Tape) -> None:
    if tape.pick(4):
        return
    if history.state.cancelled is not None:
        history.give(tape.one([c.EndCancelled(), c.EndCancelled(), c.HoldRun("code.diverged", "why", "s")]))
    elif history.state.timed_out:
        history.give(c.FailRun(FAILURE))
    else:
        history.give(
            tape.one([c.CompleteRun(Raw(b'"out"')), c.FailRun(FAILURE), c.HoldRun("code.diverged", "why", "s")])
        )


# --- what the world does -----------------------------------------------------------------------------------------


def report_task(history: History, tape: Tape) -> None:
    if not history.state.tasks:
        return
    number = EntryId(tape.one(list(history.state.tasks)))
    task = history.state.tasks[number]
    attempt, delivery = task.attempt + tape.one([0, 0, 0, -1, 1]), task.delivery + tape.one([0, 0, 0, -1, 1])
    report = tape.one(
        [
            c.ReportTaskSucceeded(number, attempt, delivery, Raw(b"3")),
            c.ReportTaskSucceeded(number, attempt, delivery, Raw(b"3"), Amounts(tokens=4, calls=1)),
            c.ReportTaskFailed(number, attempt, delivery, FAILURE, retryable=bool(tape.pick(2))),
            c.ReportTaskLost(number, attempt, delivery),
        ]
    )
    history.give(report)


def fire(history: History, tape: Tape) -> None:
    state = history.state
    numbers = [0, *state.timers, *state.waits, *state.asks, *state.children, *state.tasks, 9999]
    history.give(c.FireTimer(EntryId(tape.one(numbers))))


def send(history: History, tape: Tape) -> None:
    history.messages += 1
    history.give(
        c.DeliverMessage(f"m{history.messages}", tape.one(["m", "k", "other"]), Raw(b"1"), answer=not tape.pick(3))
    )


def answer(history: History, tape: Tape) -> None:
    asks: list[int | str] = [*history.state.asks, "q", "nowhere", 9999]
    form = Raw(tape.one([b"null", b'{"x":1}']))
    groups = tape.one([None, None, ["role:x"]])
    by = tape.one(["", "ann", "bob", "eve"])
    history.give(c.DecideAsk(tape.one(asks), bool(tape.pick(3)), by, "so", form, groups))


def tell_of_question(history: History, tape: Tape) -> None:
    numbers = [*history.state.asks, 9999]
    history.give(c.NoteTold(tape.one(numbers), tape.one(["opened", "escalated", "reminded.1"])))


def end_child(history: History, tape: Tape) -> None:
    if history.state.children:
        number = EntryId(tape.one(list(history.state.children)))
        status, failure = tape.one([("completed", None), ("failed", FAILURE), ("cancelled", None)])
        history.give(c.ReportChildEnded(number, status, Raw(b"4"), failure))


BY_HAND = [
    c.SetResult(place="s", output=Raw(b"5"), force=True, performed=True, by="ann"),
    c.SetResult(place="s", error="no", by="ann"),
    c.SetResult(place="s#2", output=Raw(b"null"), reason="by phone"),
    c.RetryRun("s", force=True),
    c.RetryRun("work", force=True),
    c.RetryRun("work", force=True),
    c.RetryRun("s#2", force=True, approved=["s#2"]),
]


def bring_to_version(history: History, tape: Tape) -> c.PatchRun:
    """A patch whose log was replayed up to now, or up to an earlier event."""
    report = ReplayReport(seq=history.state.seq - tape.one([0, 0, 1]))
    base, version = tape.one([("", "2"), ("", "3"), ("9", "2")])
    prepared = Raw(msgspec.json.encode(report))
    return c.PatchRun(patch=Raw(b'{"to":"2"}'), base=base, version=version, prepared=prepared, by="ann")


def steer(history: History, tape: Tape) -> None:
    steering = [c.PauseRun(), c.ResumeRun(), c.ResumeRun(), c.RetryRun(), c.RetryRun("s"), c.CancelRun("enough")]
    history.give(tape.one([*steering, *BY_HAND, bring_to_version(history, tape)]))


def spend(history: History, tape: Tape) -> None:
    budget = [c.RaiseBudget(added={"tokens": 5}, by="ann"), c.NoteBudget("tokens"), c.NoteBudget("calls")]
    history.give(tape.one(budget))


CODE_MOVES: list[Any] = [
    ask_step, ask_sleep, ask_messages, answer_message, ask_person, ask_child, ask_value, ask_attributes, ask_turn,
    ask_finish, ask_race, cancel_entry, refuse_message, end_code,
]  # fmt: skip
WORLD_MOVES: list[Any] = [report_task, report_task, fire, send, answer, tell_of_question, end_child, steer]
MOVES: list[Any] = [ask_step, ask_step, *CODE_MOVES, *WORLD_MOVES, *WORLD_MOVES, spend]
