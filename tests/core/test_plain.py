"""The short paths of a plain step give the same events, state, effects and mail as the tables, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, structs

from tests.core.histories import UID, UNDO, History, Tape, play
from tests.core.test_laws import HISTORIES, TAPES
from weft.core import commands as c
from weft.core import events as e
from weft.core.budgets import Amounts, Cover
from weft.core.code.machine import CodeMachine
from weft.core.code.plain import fold_event, schedule_task, take_success
from weft.core.ids import EntryId
from weft.core.run.state import Fork, Reversal


class TwoPaths(History):
    """Plays every history on a second machine, which takes the short path wherever it can."""

    def __init__(self) -> None:
        super().__init__()
        self.short = CodeMachine.fresh(self.state.uid)
        self.taken = 0
        self._expected: tuple[e.AnyEvent, Sequence[Any]] | None = None

    def give(self, command: c.AnyCommand) -> Any:
        before = self.short.snapshot()
        found = self._shortly(command)
        if found is None:
            assert self.short.snapshot() == before, "the short path declines without a trace"
        self._expected = found
        return super().give(command)

    def _shortly(self, command: c.AnyCommand) -> tuple[e.AnyEvent, Sequence[Any]] | None:
        if isinstance(command, c.ReportTaskSucceeded):
            event = take_success(self.short.style, command, self.now)
            return None if event is None else (event, [])
        if isinstance(command, c.ScheduleTask):
            scheduled = schedule_task(self.short.style, command, self.now)
            return None if scheduled is None else (scheduled[0], [scheduled[2]])
        return None

    def after(self, event: e.AnyEvent) -> None:
        if self._expected is None:
            self.short.evolve(event, at=self.now)
        else:
            (shortly, effects), self._expected = self._expected, None
            self.taken += 1
            assert e.encode(shortly) == e.encode(event)
            assert list(self.machine.effects(event)) == list(effects)
            assert not self.machine.mail(event)
        assert self.short.snapshot() == self.machine.snapshot()
        assert self.short.index.keys == self.machine.index.keys
        assert self.short.index.scopes == self.machine.index.scopes


class Loaded(History):
    """Applies every event to a second machine, as if a host loaded the run."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded = CodeMachine.fresh(self.state.uid)
        self.folded = 0

    def after(self, event: e.AnyEvent) -> None:
        before = self.loaded.snapshot()
        if fold_event(self.loaded.style, event, self.now):
            self.folded += 1
        else:
            assert self.loaded.snapshot() == before, "the short path declines without a trace"
            self.loaded.evolve(event, at=self.now)
        assert self.loaded.snapshot() == self.machine.snapshot()
        assert self.loaded.index.keys == self.machine.index.keys
        assert self.loaded.index.scopes == self.machine.index.scopes


@HISTORIES
@given(TAPES)
def test_a_loaded_run_is_the_same_by_both_paths(numbers: list[int]) -> None:
    play(Loaded(), Tape(numbers))


def test_plain_steps_are_loaded_by_the_short_path() -> None:
    history = Loaded()
    history.give(c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}")))
    for effect in ("pure", "idempotent", "irreversible"):
        history.give(c.ScheduleTask("", effect, 1, "work", Raw(b"{}"), "d", e.Policy(effect=effect)))  # type: ignore[arg-type]
        history.give(c.ReportTaskSucceeded(EntryId(history.state.seq), 1, 1, Raw(b"1")))
    assert history.folded == 6


SCHEDULED = e.TaskScheduled(step="work", at=[2], add=["work"], input=Raw(b"{}"))
SUCCEEDED = e.TaskSucceeded(task=EntryId(2), output=Raw(b"1"))
SPENT: Amounts = {"tokens": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"gone": [2]},
        {"gone_children": ["child"]},
        {"reversals": [Reversal(waits=[2])]},
        {"earlier": {"work": e.Earlier(place="work")}},
        {"spends": {"work": SPENT}},
        {"fork": Fork(point=1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_short_path_loads_nothing_into_a_run_that_other_work_depends_on(change: dict[str, Any]) -> None:
    for events in ((), (SCHEDULED,)):
        machine = started(*events)
        for name, value in change.items():
            setattr(machine.state, name, value)
        assert declines(machine, SUCCEEDED if events else SCHEDULED)


@pytest.mark.parametrize(
    "event",
    [
        structs.replace(SCHEDULED, again=e.Repetition(place="work")),
        structs.replace(SCHEDULED, cover=Cover(amounts={"calls": 1})),
        structs.replace(SCHEDULED, inline=True),
        structs.replace(SCHEDULED, early=True),
        e.TimerSet(due=5, at=[2], add=["work"]),
    ],
)
def test_the_short_path_opens_plain_steps_only(event: e.AnyEvent) -> None:
    assert declines(started(), event)


@pytest.mark.parametrize(
    ("scheduled", "succeeded"),
    [
        (SCHEDULED, structs.replace(SUCCEEDED, spent=SPENT)),
        (SCHEDULED, structs.replace(SUCCEEDED, task=EntryId(3))),
        (structs.replace(SCHEDULED, undo=UNDO), SUCCEEDED),
        (structs.replace(SCHEDULED, policy=e.Policy(deadline_ms=5)), SUCCEEDED),
    ],
)
def test_the_short_path_ends_plain_steps_only(scheduled: e.AnyEvent, succeeded: e.AnyEvent) -> None:
    assert declines(started(scheduled), succeeded)


def test_the_short_path_ends_no_step_that_was_cancelled_and_no_undo() -> None:
    machine = started(SCHEDULED)
    machine.state.entries[2].status = "cancelled"
    assert declines(machine, SUCCEEDED)
    machine = started(SCHEDULED)
    machine.state.tasks[2].undo_of = 1
    assert declines(machine, SUCCEEDED)


def started(*events: e.AnyEvent) -> CodeMachine:
    machine = CodeMachine.fresh(UID)
    for event in (e.RunStarted(run_id="run", workflow="flow", input=Raw(b"{}")), *events):
        machine.evolve(event, at=1)
    return machine


def declines(machine: CodeMachine, event: e.AnyEvent) -> bool:
    """Return whether the short path leaves an event to the tables, and everything as it was."""
    before = machine.snapshot()
    return not fold_event(machine.style, event, 1) and machine.snapshot() == before


@HISTORIES
@given(TAPES)
def test_the_short_path_does_what_the_tables_do(numbers: list[int]) -> None:
    history = play(TwoPaths(), Tape(numbers))
    assert history._expected is None


@pytest.mark.parametrize("steps", [1, 2, 50])
def test_plain_steps_take_the_short_path(steps: int) -> None:
    history = TwoPaths()
    history.give(c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}")))

    for n in range(1, steps + 1):
        history.give(c.ScheduleTask("", "work", n, "work", Raw(b"{}"), "d"))
        history.give(c.ReportTaskSucceeded(EntryId(history.state.seq), 1, 1, Raw(b"1")))

    assert history.taken == 2 * steps


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_a_late_report_is_left_to_the_tables(task: int, attempt: int, delivery: int) -> None:
    history = TwoPaths()
    history.give(c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}")))
    history.give(c.ScheduleTask("", "work", 1, "work", Raw(b"{}"), "d"))
    history.give(c.ReportTaskSucceeded(EntryId(task), attempt, delivery, Raw(b"1")))
    assert history.taken == 1 + ((task, attempt, delivery) == (2, 1, 1))
