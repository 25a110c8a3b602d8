"""Patches of goal runs on the table: requests as the golden cases write them, and what they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.goal.documents import step_of, steps_of
from tests.goal.table import Table
from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.patch.request import GoalRequest
from weft.core.goal.state import OVER_STEP
from weft.core.run import revisions
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.patches import judge_patch
from weft.errors import PatchRefused

HISTORY = ("seq", "at", "read", "revisions", "plan_revisions")
PASSING = ("deadlines", "timers", "gone", "gone_children")
ENTRIES = {"leaves": "gone", "joins": "added", "takes_up": "reopened", "drops": "dropped", "starts": "starts"}


def request_of(patch: Mapping[str, Any], today: Mapping[str, Any] | None = None) -> GoalRequest:
    """The request that a patch document makes."""
    goals = patch.get("goals", {})
    return GoalRequest(
        given={name: Raw(msgspec.json.encode(value)) for name, value in patch.get("given", {}).items()},
        add=goals.get("add", []),
        remove=goals.get("remove", []),
        steps={step: step_of(step, body) for step, body in patch.get("steps", {}).items()},
        catalogue=patch.get("catalogue", "plan"),
        replan=patch.get("replan", False),
        ends=patch.get("ends", False),
        registered=steps_of(today or {}),
    )


def command_of(request: GoalRequest, **more: Any) -> c.PatchRun:
    raw = Raw(msgspec.json.encode(request))
    return c.PatchRun(patch=raw, prepared=raw, **more)


def undo_of(table: Table, *, redo: bool = False, ends: bool = True) -> c.PatchRun:
    rev = revisions.to_redo(table.state) if redo else revisions.to_undo(table.state)
    return command_of(GoalRequest(ends=ends), undoes=rev)


def dry_run(table: Table, command: c.PatchRun) -> PatchPlan:
    """What a patch would do. The run stays as it is."""
    before = table.machine.snapshot()
    plan = table.with_inputs(lambda: judge_patch(table.machine, command, table.env())).plan
    assert table.machine.snapshot() == before
    return plan


def shown(plan: PatchPlan) -> dict[str, list[str]]:
    """What a plan says, with the words of the golden cases."""
    return {name: sorted(x.place for x in plan.entries if x.what == what) for what, name in ENTRIES.items()}


def reasons(plan: PatchPlan) -> list[tuple[str, str]]:
    """Why a patch is refused, without the family of the codes, and what each reason names."""
    return [(refusal.code.removeprefix("patch."), refusal.place) for refusal in plan.refusals]


class Patching:
    """Applies patches to a table, and compares what happens with what the dry run says."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.plans: list[PatchPlan] = []

    def apply(self, command: c.PatchRun) -> PatchPlan:
        """Patch the run. Raises PatchRefused."""
        table = self.table
        plan = dry_run(table, command)
        before = table.machine.snapshot()
        log = len(table.log)
        expecting = msgspec.structs.replace(command, expect=plan.digest)
        if not plan.ok:
            with pytest.raises(PatchRefused) as refused:
                table.tell(expecting)
            assert refused.value.plan == plan
            assert (table.machine.snapshot(), len(table.log)) == (before, log)
            raise refused.value
        table.tell(expecting)
        assert shown(plan) == self.done(msgspec.json.decode(before), table.events[log:])
        assert table.replayed().snapshot() == table.machine.snapshot()
        assert not plan.unchanged or _standing(before) == _standing(table.machine.snapshot())
        self.plans.append(plan)
        return plan

    def done(self, before: Any, since: list[e.AnyEvent]) -> dict[str, list[str]]:
        """What a patch has done, found in the state and in the events."""
        steps = before.get("steps", {})
        was = {step: run.get("status", "pending") for step, run in steps.items()}
        now = set(self.table.state.steps)
        failed = before["status"] == "failed" if "status" in before else False
        patched = since[0]
        assert isinstance(patched, e.RunPatched)
        assert patched.goal is not None
        ends = [event.step for event in since if isinstance(event, e.StepSkipped)]
        assert not failed or len(since) == 1
        return {
            "gone": sorted(set(was) - now),
            "added": sorted(now - set(was)),
            "reopened": sorted(patched.goal.taken_up),
            "dropped": sorted(step for step in ends if was.get(step) == "active"),
            "starts": sorted(event.step for event in since if isinstance(event, e.StepStarted)),
        }


def _standing(snapshot: bytes) -> dict[str, Any]:
    """Where a run stands, without its history, windows, and the types of given facts, which may have been read."""
    fields: dict[str, Any] = msgspec.json.decode(snapshot)
    fields["plan"].pop("types", None)
    for step in fields["steps"].values():
        step.pop("windows", None)
    return {name: value for name, value in fields.items() if name not in (*HISTORY, *PASSING)}


def succeeded(table: Table) -> Counter[str]:
    """How often each item has succeeded, over the whole life of the run."""
    places: dict[int, str] = {}
    found: Counter[str] = Counter()
    for number, record in enumerate(table.events, 1):
        task = record.task if isinstance(record, e.StepStarted) else record
        if isinstance(task, e.TaskScheduled):
            places[number] = f"{task.node}[{task.item}]"
        if isinstance(record, e.TaskSucceeded) and record.task in places:
            found[places[record.task]] += 1
    return found


def alive(table: Table) -> dict[str, str]:
    return {step: run.status for step, run in table.state.steps.items() if run.status not in OVER_STEP}
