"""The short path of a plain step gives the same events, state, effects and mail as the tables, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tests.core.histories import History, Tape, play
from tests.core.test_laws import HISTORIES, TAPES
from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.code.plain import schedule_task, take_success
from weft.core.ids import EntryId


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
            event = take_success(self.short, command, self.now)
            return None if event is None else (event, [])
        if isinstance(command, c.ScheduleTask):
            scheduled = schedule_task(self.short, command, self.now)
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
