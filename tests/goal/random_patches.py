"""Random patches of random goal runs, and a ledger of what the steps have read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from tests.goal.reference import need_states, needed
from tests.goal.table import Table
from tests.goal.worlds import ALL, VALUES, Traits, _step, planned, random_behaviour, random_steps
from weft.core import events as e
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.definitions import StepDef
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.patch.request import GoalRequest
from weft.core.goal.plan import GoalPlan
from weft.core.goal.planner import make_plan
from weft.core.goal.state import OVER_STEP

RANKS = 4


class PatchedWorld:
    """A run with its catalogue, its behaviour and its random choices."""

    def __init__(self, seed: int, traits: Traits = ALL) -> None:
        self.draw = random.Random(seed)
        self.traits = traits
        while True:
            self.steps = random_steps(self.draw, traits, steps=self.draw.randint(7, 14), ranks=RANKS)
            found = planned(self.draw, self.steps)
            if found is not None and len(found[0].steps) >= 4:
                break
        self.plan, self.given = found
        everything = make_plan(Catalogue(self.steps), [step.id for step in self.steps], _all_facts())
        whole = msgspec.structs.replace(everything, steps={step.id: step for step in self.steps})
        self.behaviour = random_behaviour(self.draw, traits, whole)
        self.made = 0

    def table(self) -> LedgerTable:
        return LedgerTable(self.plan, self.given)

    def move(self, table: Table, most: int) -> None:
        """Let the world do some of what it could do next."""
        for _ in range(self.draw.randrange(most)):
            commands = table.open_commands()
            if table.state.over or not commands:
                return
            table.run(self.draw.choice(commands), self.behaviour)

    def request(self, table: LedgerTable) -> GoalRequest:
        """A random patch, mostly with one change, sometimes with several, and mostly one that is possible."""
        draw = self.draw
        fields: dict[str, Any] = {"ends": draw.random() < 0.5}
        kinds = ["given", "add", "remove", "redefine", "new", "now", "replan"]
        for kind in draw.sample(kinds, draw.choice([1, 1, 1, 2, 3])):
            if kind == "given":
                fact = f"f{draw.randrange(RANKS)}{draw.choice('abc')}"
                fields["given"] = {fact: Raw(msgspec.json.encode(draw.choice(VALUES)))}
            elif kind in ("add", "remove"):
                likely = sorted(table.state.steps) if kind == "add" else table.plan.goals
                fields[kind] = [draw.choice(likely) if likely and draw.random() < 0.9 else draw.choice(self.steps).id]
            elif kind == "now":
                fields.update(catalogue="now", registered=self.today())
            elif kind == "replan":
                fields["replan"] = True
            else:
                fields.setdefault("steps", {}).update([self.definition(new=kind == "new")])
        return GoalRequest(**fields)

    def definition(self, *, new: bool) -> tuple[str, StepDef]:
        draw = self.draw
        self.made += new
        step = f"n{self.made}" if new else draw.choice(self.steps).id
        rank = draw.randrange(RANKS)
        below = [f"f{lower}{letter}" for lower in range(rank) for letter in "abc"]
        needs = draw.sample(below, min(len(below), draw.choice([0, 1, 2])))
        gives = draw.sample([f"f{rank}{letter}" for letter in "abc"], draw.choice([1, 1, 2]))
        return step, _step(draw, self.traits, step, needs, gives)

    def today(self) -> list[StepDef]:
        """The catalogue as it is now: some steps are gone, some are others."""
        kept = {step.id: step for step in self.steps if self.draw.random() > 0.15}
        kept.update([self.definition(new=False) for _ in range(self.draw.randrange(2))])
        kept.update([self.definition(new=True) for _ in range(self.draw.randrange(2))])
        return list(kept.values())


def _all_facts() -> list[str]:
    return [f"f{rank}{letter}" for rank in range(RANKS) for letter in "abc"]


class LedgerTable(Table):
    """A table that notes what every step has read, and judges every event by the plain rules."""

    def __init__(self, plan: GoalPlan, given: dict[str, Any]) -> None:
        self.read: dict[str, bytes] = {}
        super().__init__(plan, given)

    @property
    def plan(self) -> GoalPlan:
        plan = self.machine.plan
        assert plan is not None
        return plan

    def take(self, events: Sequence[e.AnyEvent]) -> None:
        for event in events:
            if isinstance(event, e.StepStarted):
                assert event.step in needed(self.plan, self.state, now=True), f"{event.step} starts needlessly"
                self._note(event.step)
            super().take([event])
            self._compare_counts()
            for fact, value in self.read.items():
                assert bytes(self.state.facts[fact][0].value) == value, f"the fact {fact} was read and has changed"

    def _note(self, step: str) -> None:
        states = need_states(self.plan, self.state)
        for fact, need in self.plan.steps[step].needs.items():
            if need.role == "const" or need.collect == "none" or fact not in self.state.facts:
                continue
            if self.state.steps[step].decided.get(fact) == 0 or (
                need.role == "optional" and states[step, fact] == "open"
            ):
                continue
            self.read.setdefault(fact, bytes(self.state.facts[fact][0].value))

    def _compare_counts(self) -> None:
        flow, state = self.machine.flow, self.state
        if flow is None or not state.begun or state.ended or state.over:
            return
        fresh = NeedCounts(self.plan, state)
        states = need_states(self.plan, state)
        for counts in (flow, fresh):
            for step in counts.by_index:
                if state.steps[step.id].status == "pending":
                    assert {n.fact.name: n.state for n in step.needs} == {
                        fact: found for (owner, fact), found in states.items() if owner == step.id
                    }
        at_all, now = needed(self.plan, state, now=False), needed(self.plan, state, now=True)
        open_steps = {s.id for s in flow.by_index if state.steps[s.id].status not in OVER_STEP}
        assert {s.id for s in flow.by_index if s.needed} & open_steps == at_all & open_steps
        assert {s.id for s in flow.by_index if s.needed_now} & open_steps == now & open_steps
