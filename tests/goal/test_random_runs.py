"""Random runs keep what docs/internals/goal.md#7-guarantees says, in every order of answers."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from tests import scale
from tests.goal.reference import inputs_of, need_states, needed
from tests.goal.table import Table
from tests.goal.worlds import ALL, Traits, planned, random_behaviour, random_steps
from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.inputs import assemble_inputs
from weft.core.goal.machine import GoalMachine
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.plan import GoalPlan
from weft.core.goal.state import OVER_STEP, GoalState

pytestmark = scale.MARKS

WORLDS = scale.scaled(15, 600)


class Watched(Table):
    """A table where every event is judged by the plain rules."""

    def __init__(self, plan: GoalPlan, given: dict[str, Any]) -> None:
        self.known: dict[str, bytes] = {}
        self.plan = plan
        super().__init__(plan, given)

    def take(self, events: Any) -> None:
        for event in events:
            if isinstance(event, e.StepStarted):
                assert event.step in needed(self.plan, self.state, now=True), "a needless start"
                bound = assemble_inputs(event.inputs, event.facts, self.state.facts)
                assert msgspec.json.decode(bound) == inputs_of(self.plan, self.state, event.step)
            super().take([event])
            self.compare_counts()

    def compare_counts(self) -> None:
        flow, state = self.machine.flow, self.state
        if flow is None or not state.begun or state.ended or state.over:
            return
        states = need_states(self.plan, state)
        assert {(s.id, n.fact.name): n.state for s in flow.by_index for n in s.needs} == states
        at_all, now = needed(self.plan, state, now=False), needed(self.plan, state, now=True)
        alive = {s.id for s in flow.by_index if state.steps[s.id].status not in OVER_STEP}
        assert {s.id for s in flow.by_index if s.needed} & alive == at_all & alive
        assert {s.id for s in flow.by_index if s.needed_now} & alive == now & alive

    def check(self) -> None:
        super().check()
        for name, values in self.state.facts.items():
            first = bytes(values[0].value)
            assert self.known.setdefault(name, first) == first, f"the fact {name} has changed"


def worlds(traits: Traits, count: int, first: int = 0) -> Any:
    made, seed = 0, first
    while made < count:
        rng = random.Random(seed)
        found = planned(rng, random_steps(rng, traits, steps=rng.randint(3, 10)))
        if found is not None:
            made += 1
            yield seed, found[0], found[1], random_behaviour(rng, traits, found[0])
        seed += 1


def assert_lived_well(table: Table) -> None:
    starts, ends = Counter[str](), Counter[str]()
    for event in table.events:
        match event:
            case e.StepStarted(step=step):
                starts[step] += 1
            case e.StepCompleted(step=step) | e.StepFailedEvent(step=step) | e.StepSkipped(step=step):
                ends[step] += 1
    ends.update(table.state.dropped)
    assert not starts or max(starts.values()) == 1
    assert set(ends.values()) <= {1}
    assert set(ends) == set(table.state.steps)
    assert table.machine.outstanding() == ()
    assert (
        sum(isinstance(event, e.RunCompleted | e.RunFailedEvent | e.RunCancelledEvent) for event in table.events) == 1
    )
    for step, run in table.state.steps.items():
        for need_name in run.decided:
            assert table.machine.plan is not None
            assert table.machine.plan.steps[step].needs[need_name].role == "optional"


def test_every_run_ends_and_keeps_its_promises() -> None:
    statuses: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seed, plan, given, behaviour in worlds(ALL, WORLDS):
        table = Watched(plan, given)
        try:
            table.play(behaviour, seed=seed)
            assert_lived_well(table)
        except BaseException:
            print(f"seed {seed}")
            raise
        statuses[table.state.status] += 1
        kinds.update(table.names)
    assert min(statuses["completed"], statuses["failed"]) > WORLDS / 10
    for name in ("retry_scheduled", "work_skipped", "deadline_passed", "step_skipped", "comp_started", "work_failed"):
        assert kinds[name] > 5 or not scale.IS_PROOF, f"the worlds have too few {name}"


def test_a_replay_is_the_same_run_and_so_is_one_from_a_snapshot() -> None:
    for seed, plan, given, behaviour in worlds(ALL, 150, first=20_000):
        live, broken = Table(plan, given), Table(plan, given)
        draw, again = random.Random(seed), random.Random(seed)
        while not live.state.over:
            live.run(draw.choice(live.open_commands()), behaviour)
            broken.run(again.choice(broken.open_commands()), behaviour)
            snapshot = broken.machine.snapshot()
            assert live.replayed().snapshot() == snapshot == live.machine.snapshot(), f"seed {seed}"
            broken.machine = GoalMachine.restore(broken.program, snapshot)
            broken.check()
        assert [type(x) for x in live.events] == [type(x) for x in broken.events]
        assert [e.encode(x) for x in live.events] == [e.encode(x) for x in broken.events]


def test_counting_again_gives_the_counts_that_were_kept() -> None:
    for seed, plan, given, behaviour in worlds(ALL, 100, first=40_000):
        table = Table(plan, given)
        draw = random.Random(seed)
        while not table.state.over:
            table.run(draw.choice(table.open_commands()), behaviour)
            flow = table.machine.flow
            if flow is not None and not table.state.ended and not table.state.over:
                assert counts(NeedCounts(plan, table.state)) == counts(flow), f"seed {seed}"


def counts(flow: NeedCounts) -> Any:
    steps = {
        s.id: (s.open_gates, s.closed, s.dead, s.unmet, s.undecided, s.needed, s.needed_now)
        for s in flow.by_index
        if s.run.status not in OVER_STEP
    }
    facts = {f.name: (f.values, f.left, f.empty, f.wanted, f.wanted_now) for f in flow.facts.values()}
    return steps, facts


def test_duplicates_and_late_answers_decide_nothing() -> None:
    for seed, plan, given, behaviour in worlds(ALL, 100, first=60_000):
        table = Table(plan, given)
        draw = random.Random(seed)
        old: list[Any] = []
        while not table.state.over:
            live = dict(table.tasks)
            before = len(table.log)
            table.run(draw.choice(table.open_commands()), behaviour)
            assert len(table.log) > before
            old += [effect for number, effect in live.items() if number not in table.tasks]
            settled = [x for x in old if x.task not in table.tasks]
            if settled and not table.state.over:
                quiet = len(table.log)
                for reply in ({"output": {"f1a": "late"}}, {"error": "late"}, {"retry": "late"}):
                    table.report(draw.choice(settled), reply)
                assert len(table.log) == quiet, f"seed {seed}"


def test_a_cancel_anywhere_ends_the_run_and_drops_the_rest() -> None:
    drained = 0
    for seed, plan, given, behaviour in worlds(ALL, 150, first=80_000):
        table = Table(plan, given)
        draw = random.Random(seed)
        for _ in range(draw.randrange(6)):
            if not table.state.over:
                table.run(draw.choice(table.open_commands()), behaviour)
        if table.state.over or table.state.ended:
            continue
        table.run(["cancel"], behaviour)
        drained += len(table.open_commands()) > 0
        table.play(behaviour, seed=seed)
        assert table.state.status == "cancelled"
        assert_lived_well(table)
    assert drained > 5


def test_a_pause_anywhere_loses_nothing() -> None:
    for seed, plan, given, behaviour in worlds(ALL, 80, first=100_000):
        table, plain = Table(plan, given), Table(plan, given)
        draw = random.Random(seed)
        while not plain.state.over:
            command = draw.choice(plain.open_commands())
            plain.run(command, behaviour)
            if not table.state.over and table.state.status == "running" and not table.state.undoing:
                table.tell(c.PauseRun())
                assert table.open_commands() == [
                    x for x in table.open_commands() if x[0] in ("retry", "deadline", "late")
                ]
                table.tell(c.ResumeRun())
            table.run(command if command[0] != "undo" else _undo_of(table), behaviour)
        names = [n for n in table.names if n]
        assert (names, table.state.status) == (plain.names, plain.state.status), f"seed {seed}"


def test_what_comes_in_a_pause_is_recorded_and_acted_on_afterwards() -> None:
    late = 0
    for seed, plan, given, behaviour in worlds(ALL, 150, first=110_000):
        table = Table(plan, given)
        draw = random.Random(seed)
        while not table.state.over:
            if table.state.status == "running" and draw.random() < 0.5:
                in_hand = list(table.tasks.values())
                table.tell(c.PauseRun())
                quiet = len(table.log)
                for effect in draw.sample(in_hand, min(2, len(in_hand))):
                    table.report(effect, draw.choice([{"output": {}}, {"retry": "busy"}, {"error": "boom"}]))
                if table.open_commands() and draw.random() < 0.5:
                    table.run(draw.choice(table.open_commands()), behaviour)
                since = [type(event) for event, _ in table.log[quiet:]]
                assert not {e.StepStarted, e.TaskScheduled, e.WorkResumed, e.UndoScheduled} & set(since)
                late += bool(since)
                table.tell(c.ResumeRun())
            else:
                table.run(draw.choice(table.open_commands()), behaviour)
        assert_lived_well(table)
    assert late > 50


def _undo_of(table: Table) -> Any:
    return next(command for command in table.open_commands() if command[0] == "undo")


# --- independent of order ----------------------------------------------------------------------------------------

SURE = Traits("optionals", "each", "const")
SHAKY = Traits("optionals", "each", "failures", "missing", "gates", "predicates", "const")


def outcome(plan: GoalPlan, given: dict[str, Any], behaviour: Any, seed: int) -> Table:
    table = Table(plan, given)
    table.play(behaviour, seed=seed)
    return table


def test_where_all_succeeds_everything_is_independent_of_order() -> None:
    for seed, plan, given, behaviour in worlds(SURE, 80, first=120_000):
        tables = [outcome(plan, given, behaviour, order) for order in range(6)]
        found = [(t.state.status, t.result(), t.facts(), t.statuses(), t.inputs()) for t in tables]
        assert all(one == found[0] for one in found), f"seed {seed}"


CROWDS = Traits("competition", "crowds", "failures", "missing", "gates", "predicates")


@pytest.mark.parametrize("traits", [SHAKY, CROWDS], ids=["one provider", "several, all of them read"])
def test_with_failures_gates_and_predicates_the_outcome_is_independent_of_order(traits: Traits) -> None:
    failed = 0
    for seed, plan, given, behaviour in worlds(traits, 150, first=140_000):
        tables = [outcome(plan, given, behaviour, order) for order in range(8)]
        statuses = {t.state.status for t in tables}
        assert len(statuses) == 1, f"seed {seed}: {statuses}"
        failed += statuses == {"failed"}
        if statuses == {"completed"}:
            found = [(t.result(), {g: t.state.steps[g].status for g in plan.goals if g in plan.steps}) for t in tables]
            assert all(one == found[0] for one in found), f"seed {seed}"
    assert failed > 15


def test_competitors_with_equal_values_give_one_result() -> None:
    for seed, plan, given, behaviour in worlds(Traits("competition"), 80, first=160_000):
        for answers in behaviour.values():
            for attempts in answers["items"]:
                for reply in attempts:
                    reply["output"] = {fact: f"value of {fact}" for fact in reply["output"]}
        tables = [outcome(plan, given, behaviour, order) for order in range(6)]
        found = [(t.state.status, t.result()) for t in tables]
        assert all(one == found[0] for one in found), f"seed {seed}"


@pytest.mark.parametrize("state", [GoalState(uid="u")])
def test_a_run_without_a_plan_has_nothing_to_do(state: GoalState) -> None:
    from tests.goal.documents import Program

    machine = GoalMachine(Program(), state)
    assert machine.outstanding() == []
    assert machine.plan is None
