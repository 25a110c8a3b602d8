"""The fast path of a goal run gives the same events, state and effects as the tables, or nothing at all."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests import scale
from tests.goal.documents import Program
from tests.goal.plays import plan_of
from tests.goal.table import UID, Table
from tests.goal.test_random_runs import worlds
from tests.goal.worlds import ALL, Traits
from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import AnyEffect
from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import GoalPlan
from weft.core.goal.state import GoalState

pytestmark = scale.MARKS

WORLDS = scale.scaled(60, 1_000)


class TwoPaths(Table):
    """Plays every run on a second machine too, which takes the fast path wherever it can."""

    def __init__(self, plan: GoalPlan, given: Mapping[str, Any]) -> None:
        program = Program()
        self.short = GoalMachine(program, GoalState(uid=UID))
        self.taken = 0
        self._foreseen: list[e.AnyEvent] = []
        self._effects: list[AnyEffect] = []
        super().__init__(plan, given, program=program)

    def tell(self, command: c.AnyCommand) -> int:
        found = None
        if isinstance(command, c.ReportTaskSucceeded) and self.state.status == "running":
            before = self.short.snapshot()
            found = self.short.take_success(command, self.env())
            if found is None:
                assert self.short.snapshot() == before, "the fast path declines without a trace"
            else:
                self.taken += 1
                self._foreseen, self._effects = list(found.events), []
        known = len(self.log)
        told = super().tell(command)
        if found is not None:
            assert not self._foreseen
            assert list(found.effects) == self._effects
            assert not found.rests or len(self.log) == known + len(found.events)
        assert self.short.snapshot() == self.machine.snapshot()
        return told

    def take(self, events: Sequence[e.AnyEvent]) -> None:
        for event in events:
            super().take([event])
            if self._foreseen:
                assert e.encode(self._foreseen.pop(0)) == e.encode(event)
                self._effects += self.machine.effects(event)
                assert not self.machine.mail(event)
            else:
                if isinstance(event, e.StepStarted | e.RunCompleted):  # a run of a simple plan decides these by itself
                    (found,) = self.short.follow(self.env())
                    assert e.encode(found) == e.encode(event)
                self.short.evolve(self.events[-1], at=self.now)

    @property
    def was_simple(self) -> bool:
        """Whether the run ended without anything being counted."""
        return self.short.style.items.counted is None


@pytest.mark.parametrize("traits", [ALL, Traits()], ids=["all", "plain"])
def test_the_fast_path_does_what_the_tables_do(traits: Traits) -> None:
    taken = simple = 0
    for seed, plan, given, behaviour in worlds(traits, WORLDS, first=60_000):
        table = TwoPaths(plan, given)
        draw = random.Random(seed)
        while not table.state.over:
            table.run(draw.choice(table.open_commands()), behaviour)
        taken += table.taken
        simple += table.was_simple
    assert taken > WORLDS / 10
    assert simple > WORLDS / 10 or traits is ALL


def test_plain_steps_take_the_fast_path() -> None:
    steps = {f"s{n}": {"needs": {f"f{n}": {}}, "gives": {f"f{n + 1}": {}}} for n in range(5)}
    given = {"f0": 1}
    table = TwoPaths(plan_of(steps, ["s4"], given), given)
    table.play({step: {"output": {f"f{n + 1}": n}} for n, step in enumerate(steps)})
    assert table.taken == 5
    assert table.was_simple
    assert table.state.status == "completed"
