"""Random patches of random runs keep what docs/internals/goal.md#9-patches guarantees."""

from __future__ import annotations

from collections import Counter

import msgspec

from tests import scale
from tests.goal.patching import Patching, alive, command_of, reasons, undo_of
from tests.goal.random_patches import LedgerTable, PatchedWorld
from tests.goal.table import Table
from tests.goal.worlds import Traits
from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.machine import GoalMachine
from weft.core.goal.patch.request import GoalRequest
from weft.core.goal.planner import make_plan
from weft.errors import PatchRefused, Refused, RunFinished

pytestmark = scale.MARKS

WORLDS = scale.scaled(20, 1_000, soak=20_000)


def test_patched_runs_end_and_keep_their_promises() -> None:
    seen: Counter[str] = Counter()
    for seed in range(WORLDS):
        try:
            play(PatchedWorld(seed), seen)
        except BaseException:
            print(f"seed {seed}")
            raise
    assert min(seen["applied"], seen["undone"], seen["retried"], seen["failed then patched"]) > WORLDS / 20, seen
    for code in ("fact_known", "unknown_goal", "step_begun", "missing", "would_end"):
        assert seen[code] or not scale.IS_PROOF, f"no patch was refused as {code}: {seen}"


def play(world: PatchedWorld, seen: Counter[str]) -> None:
    """One run: patched at random moments, retried when it has failed, and played to its end."""
    table = world.table()
    for _ in range(world.draw.choice([1, 2, 4])):
        world.move(table, 4)
        patch(world, table, seen)
        if table.state.status == "failed" and not table.state.undone and world.draw.random() < 0.8:
            retry(table, seen)
    for _ in range(3):
        table.play(world.behaviour, seed=world.draw.randrange(1000))
        assert_ended_well(table)
        if table.state.status != "failed" or not retry(table, seen):
            return
    seen["still failing"] += 1


def patch(world: PatchedWorld, table: LedgerTable, seen: Counter[str]) -> None:
    was_failed = table.state.status == "failed"
    try:
        Patching(table).apply(command_of(world.request(table)))
        seen["applied"] += 1
        seen["failed then patched"] += was_failed
        table.machine = GoalMachine.restore(table.program, table.machine.snapshot())
        if world.draw.random() < 0.3:
            Patching(table).apply(undo_of(table))
            seen["undone"] += 1
            if world.draw.random() < 0.5:
                Patching(table).apply(undo_of(table, redo=True))
                seen["redone"] += 1
    except PatchRefused as refused:
        seen.update(code for code, _ in reasons(refused.plan))
    except RunFinished:
        seen["finished"] += 1
    except Refused as refused:
        seen[refused.code] += 1


def retry(table: LedgerTable, seen: Counter[str]) -> bool:
    try:
        table.tell(c.RetryRun())
    except Refused as refused:
        seen[refused.code] += 1
        return False
    assert table.replayed().snapshot() == table.machine.snapshot()
    table.machine = GoalMachine.restore(table.program, table.machine.snapshot())
    seen["retried"] += 1
    return True


def assert_ended_well(table: LedgerTable) -> None:
    """Between two retries a step of the last plan starts at most once and ends exactly once."""
    assert table.machine.outstanding() == ()
    if isinstance(table.events[-1], e.RunPatched):
        return  # it has failed, and waits to be retried
    starts, ends = Counter[str](), Counter[str]()
    for event in table.events:
        match event:
            case e.RunRetried(steps=steps):
                for step in steps:
                    starts[step] = ends[step] = 0
            case e.RunPatched(goal=e.GoalChange(gone=gone, taken_up=taken_up)):
                for step in (*gone, *taken_up):
                    starts[step] = ends[step] = 0
            case e.StepStarted(step=step):
                starts[step] += 1
            case e.StepCompleted(step=step) | e.StepFailedEvent(step=step) | e.StepSkipped(step=step):
                ends[step] += 1
    ends.update(table.state.dropped)
    planned = table.plan.steps
    assert all(starts[step] <= 1 for step in planned), starts
    assert {step: ends[step] for step in planned} == dict.fromkeys(planned, 1)


SURE = Traits("optionals", "each", "const")
AHEAD = scale.scaled(25, 300, soak=10_000)


def test_a_patch_of_what_lies_ahead_ends_as_if_the_run_had_started_so() -> None:
    same = 0
    for seed in range(70_000, 70_000 + AHEAD):
        world = PatchedWorld(seed, SURE)
        table = world.table()
        world.move(table, 3)
        pending = [step for step, status in alive(table).items() if status == "pending"]
        if not pending:
            continue
        steps = {step.id: step for step in world.steps}
        changed = table.plan.steps[world.draw.choice(pending)]
        kept = {fact: need for fact, need in changed.needs.items() if world.draw.random() < 0.7}
        steps[changed.id] = msgspec.structs.replace(changed, needs=kept)
        added = world.draw.choice(sorted(table.state.steps))
        try:
            Patching(table).apply(command_of(GoalRequest(add=[added], steps={changed.id: steps[changed.id]})))
        except PatchRefused:
            continue
        fresh = Table(make_plan(Catalogue(list(steps.values())), table.plan.goals, world.given), world.given)
        for run in (table, fresh):
            run.play(world.behaviour, seed=seed)
        assert (table.state.status, table.result()) == (fresh.state.status, fresh.result()), f"seed {seed}"
        same += 1
    assert same > 0.6 * AHEAD
