"""The laws of the core, over random histories: a fold is what was lived, deciding changes nothing, twice is once."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from tests import scale
from tests.core.histories import BEGIN, FAILURE, History, Tape, check, play
from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.code.style import ASKED_EVENTS, EVENTS, FORK_EVENTS
from weft.core.effects import ArmTimer, DisarmTimer, EndRun, PerformTask, StopTask
from weft.core.fork_events import PerformAsked
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.core.run.statuses import LIVE, TRANSITIONS
from weft.errors import WeftError

TAPES = st.lists(st.integers(0, 2**16), max_size=250)
HISTORIES = settings(max_examples=scale.scaled(15, 250))


def fold(history: History) -> CodeMachine:
    machine = CodeMachine.fresh(history.state.uid)
    for event, at in history.log:
        machine.evolve(e.decode(e.encode(event)), at=at)
    return machine


class Pictured(History):
    """Takes a picture of the state after every event."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures: list[bytes] = []

    def after(self, event: e.AnyEvent) -> None:
        self.pictures.append(self.machine.snapshot())


@HISTORIES
@given(TAPES)
def test_folding_from_zero_gives_the_state_that_was_lived_after_every_event(numbers: list[int]) -> None:
    history = play(Pictured(), Tape(numbers))
    machine = CodeMachine.fresh(history.state.uid)
    for (event, at), picture in zip(history.log, history.pictures, strict=True):
        machine.evolve(e.decode(e.encode(event)), at=at)
        assert machine.snapshot() == picture


@HISTORIES
@given(TAPES, st.integers(0, 1000))
def test_a_snapshot_and_the_tail_give_the_same_state_as_the_whole_log(numbers: list[int], cut: int) -> None:
    history = play(Pictured(), Tape(numbers))
    at = cut % len(history.log)
    machine = CodeMachine.restore(history.pictures[at])
    assert machine.snapshot() == history.pictures[at]
    for event, moment in history.log[at + 1 :]:
        machine.evolve(event, at=moment)
    assert machine.snapshot() == history.pictures[-1]
    assert machine.index.keys == history.machine.index.keys
    assert machine.outstanding() == history.machine.outstanding()


class Watchful(History):
    """Looks that deciding leaves no trace."""

    def give(self, command: c.AnyCommand) -> Any:
        before = self.machine.snapshot()
        try:
            first = self.machine.decide(command, Env(now=self.now, check=check))
        except WeftError:
            first = None
        assert self.machine.snapshot() == before
        if first is not None:
            assert list(self.machine.decide(command, Env(now=self.now, check=check))) == list(first)
        return super().give(command)


@HISTORIES
@given(TAPES)
def test_deciding_changes_nothing_and_gives_the_same_again(numbers: list[int]) -> None:
    play(Watchful(), Tape(numbers))


PLACE = ("", "zz", 1)
EVERY_COMMAND: list[c.AnyCommand] = [
    c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}")),
    c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}"), refused="taken"),
    *(c.ReportTaskSucceeded(EntryId(n), a, d) for n in (0, 2, 3, 99) for a in (0, 1, 2) for d in (0, 1)),
    *(c.ReportTaskFailed(EntryId(n), 1, 1, FAILURE, r) for n in (0, 2, 3, 99) for r in (True, False)),
    *(c.ReportTaskLost(EntryId(n), 1, 1) for n in (0, 2, 3, 99)),
    *(c.FireTimer(EntryId(n)) for n in (0, 1, 2, 3, 4, 99)),
    c.DeliverMessage("x", "m"),
    c.DeliverMessage("x", "nobody"),
    *(c.DecideAsk(q, yes, by) for q in (0, 2, 3, 99, "q", "s") for yes in (True, False) for by in ("", "ann")),
    *(c.ReportChildEnded(EntryId(n), "completed") for n in (0, 2, 3, 99)),
    c.CancelRun("x"), c.PauseRun(), c.ResumeRun(), c.RetryRun(), c.RetryRun("s"), c.RetryRun("nowhere"),
    c.ScheduleTask(*PLACE, "work", Raw(b"{}"), "d"), c.SetTimer(*PLACE, 5), c.AwaitMessages(*PLACE, ["m"]),
    c.OpenAsk(*PLACE, "?"), c.StartChild(*PLACE, "child", "1", "code", Raw(b"{}"), "d"),
    c.RecordValue(*PLACE, "now", Raw(b"1")), c.SetAttributes(*PLACE, {"a": 1}), c.DecideRace(*PLACE, "x", ["y"]),
    c.TurnLoop(*PLACE, 1, Raw(b"1"), 20), c.FinishLoop(*PLACE, 1, Raw(b"1")),
    *(c.RefuseMessage(EntryId(n), "x", "bad") for n in (0, 2, 99)), *(c.CancelEntry(EntryId(n)) for n in (0, 2, 3, 99)),
    c.CompleteRun(), c.FailRun(FAILURE), c.EndCancelled(), c.HoldRun("code.diverged", "why"),
]  # fmt: skip


@settings(max_examples=scale.scaled(60, 300))
@given(TAPES)
def test_every_command_in_every_state_is_decided_or_refused_by_name(numbers: list[int]) -> None:
    machine = play(History(), Tape(numbers)).machine
    env = Env(now=BEGIN + 10_000, check=check)
    for command in EVERY_COMMAND:
        try:
            events = machine.decide(command, env)
        except WeftError:
            continue
        assert all(type(event) in e.AnyEvent.__args__ for event in events)


def test_a_run_that_was_never_started_survives_every_command_too() -> None:
    env = Env(now=BEGIN, check=check)
    for command in EVERY_COMMAND:
        machine = CodeMachine.fresh("0" * 32)
        try:
            machine.decide(command, env)
        except WeftError:
            continue


IDENTIFIED = (
    c.StartRun, c.ReportTaskSucceeded, c.ReportTaskFailed, c.ReportTaskLost, c.FireTimer, c.ReportChildEnded,
    c.CancelRun,
)  # fmt: skip
"""Commands that the state itself recognises. Messages and steering carry keys, which the service looks up."""


@settings(max_examples=scale.scaled(15, 250))
@given(TAPES)
def test_what_was_applied_once_decides_nothing_at_any_later_point(numbers: list[int]) -> None:
    done: list[c.AnyCommand] = []

    class Repeating(History):
        def give(self, command: c.AnyCommand) -> Any:
            outcome = super().give(command)
            if isinstance(command, c.RetryRun) and self.given[-1][1]:
                done.clear()  # a run that is tried again may be cancelled again, and time out again
            if isinstance(command, IDENTIFIED) and self.given[-1][1]:
                done.append(command)
            for old in done:
                if isinstance(old, c.CancelRun) and self.state.status == "held":
                    continue  # it has no code to tell any more: asking again ends it
                try:
                    events = self.machine.decide(old, Env(now=self.now, check=check))
                except WeftError:
                    continue
                assert not events, (old, events)
            return outcome

    play(Repeating(), Tape(numbers))


class Ledger(History):
    """Keeps books of what was asked of the world and what was answered, beside the state."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[int, PerformTask] = {}
        self.timers: dict[int, ArmTimer] = {}

    def after(self, event: e.AnyEvent) -> None:
        match event:
            case e.TaskSucceeded(task=task) | e.TaskFailed(task=task) | e.TaskLost(task=task):
                self.tasks.pop(task, None)
            case e.TimerFired(timer=timer):
                self.timers.pop(timer, None)
            case e.WaitTimedOut(wait=wait):
                self.timers.pop(wait, None)
            case e.RunTimedOut() | e.CancelRequested() | e.RunEnding():
                self.timers.pop(0, None)
        for effect in self.machine.effects(event):
            self.account(effect)

    def account(self, effect: object) -> None:
        match effect:
            case PerformTask(task=task):
                self.tasks[task] = effect
            case ArmTimer(entry=entry):
                self.timers[entry] = effect
            case StopTask(task=task):
                self.tasks.pop(task, None)
                self.timers.pop(task, None)
            case DisarmTimer(entry=entry):
                self.timers.pop(entry, None)
            case EndRun():
                self.tasks.clear()
                self.timers.clear()

    def give(self, command: c.AnyCommand) -> Any:
        outcome = super().give(command)
        self.compare()
        return outcome

    def compare(self) -> None:
        found = self.machine.outstanding()
        timers = {effect.entry: effect for effect in found if isinstance(effect, ArmTimer)}
        assert timers == self.timers
        if self.state.status == "paused":
            return  # what was handed out before goes on; nothing is handed out now
        tasks = {effect.task: effect for effect in found if isinstance(effect, PerformTask)}
        assert {n: (t.attempt, t.delivery) for n, t in tasks.items()} == {
            n: (t.attempt, t.delivery) for n, t in self.tasks.items()
        }


@HISTORIES
@given(TAPES)
def test_effects_issued_less_those_answered_are_what_is_outstanding(numbers: list[int]) -> None:
    play(Ledger(), Tape(numbers))


@HISTORIES
@given(TAPES)
def test_a_run_that_is_over_asks_for_nothing_more(numbers: list[int]) -> None:
    history = play(History(), Tape(numbers))
    if not history.state.over:
        history.state.status = "failed"
    assert history.machine.outstanding() == ()
    assert history.machine.follow(Env(now=history.now, check=check)) == ()


class Lively(History):
    def give(self, command: c.AnyCommand) -> Any:
        outcome = super().give(command)
        state = self.state
        if state.ended and not state.over:
            assert state.tasks or any(child.cancelled for child in state.children.values())
        assert (state.status == "held") is (state.held is not None)
        assert not state.over or not (state.tasks or state.timers or state.waits or state.asks or state.children)
        for number in (*state.timers, *state.waits, *state.asks):
            assert state.entries[number].status == "open"
        return outcome


@HISTORIES
@given(TAPES)
def test_a_run_whose_code_has_ended_waits_for_something_or_is_over(numbers: list[int]) -> None:
    play(Lively(), Tape(numbers))


def many_histories(count: int, seed: int = 0) -> list[History]:
    made = []
    for n in range(count):
        chance = random.Random(f"{seed}:{n}")
        made.append(play(History(), Tape([chance.randrange(2**16) for _ in range(chance.randrange(20, 300))])))
    return made


ELSEWHERE = {
    *(("paused", "held"), ("paused", "rolling_back"), ("rolling_back", "held")),
    *(("cancelling", "cancelled"), ("cancelled", "running")),
    *(change for status in LIVE for change in ((status, "moved"), ("moved", status))),
}
"""Changes that do not come from the code of a run."""
MOVES = {e.RunMoved, e.RunAdopted}


@pytest.mark.proof
def test_the_status_changes_only_as_the_table_says_and_every_change_happens() -> None:
    seen = {change for history in many_histories(3000) for change in history.statuses}
    assert not seen - TRANSITIONS
    assert TRANSITIONS - seen == ELSEWHERE


def test_random_histories_are_rich_enough_to_prove_something() -> None:
    kinds = {type(event) for history in many_histories(400) for event, _ in history.log}
    asked = {PerformAsked}  # a retry from a place in front of irreversible work without a result
    assert kinds == (EVENTS - FORK_EVENTS - MOVES - ASKED_EVENTS) | asked


@pytest.mark.parametrize("seed", scale.first(2, range(10)))
def test_long_histories_keep_every_law_too(seed: int) -> None:
    for n in range(25):
        chance = random.Random(f"long {seed} {n}")
        numbers = [chance.randrange(2**16) for _ in range(chance.randrange(100, 500))]
        lived = play(Pictured(), Tape(numbers))
        assert fold(lived).snapshot() == lived.pictures[-1], f"seed {seed} {n}"
        for laws in (Ledger, Lively):
            play(laws(), Tape(numbers))


DIGEST = """
from tests.core.test_laws import many_histories, digest
print(digest(many_histories(60)))
"""


def digest(histories: list[History]) -> str:
    """One number for all bytes that these histories wrote and all states they led to."""
    found = hashlib.sha256()
    for history in histories:
        for event, at in history.log:
            found.update(b"%d" % at)
            found.update(e.encode(event))
        found.update(history.machine.snapshot())
        found.update(msgspec.json.encode(history.machine.outstanding()))
    return found.hexdigest()


@pytest.mark.parametrize("seed", scale.first(1, ["4242", "0", "1", "2"]))
def test_the_same_history_gives_the_same_bytes_under_every_hash_seed(seed: str) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    ran = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == digest(many_histories(60))
