"""The golden cases of patches: what each does, and how the run ends in every order of what is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.goal.documents import catalogue_of, steps_of
from tests.goal.patching import Patching, command_of, reasons, request_of, shown, succeeded, undo_of
from tests.goal.table import Table
from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.plan import GoalPlan
from weft.core.goal.planner import make_plan
from weft.errors import PatchRefused

CASES = sorted((Path(__file__).parents[1] / "golden" / "goal-patches").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_golden_patch(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    plan = make_plan(catalogue_of(steps_of(case["steps"])), case["goals"], case["given"])
    ways = 0
    for ways, table in enumerate(every_order(plan, case), 1):
        compare(table, case["expect"], f"way {ways}: {table.way}")
    assert ways >= case["explored"]["ends"]


def patched(plan: GoalPlan, case: dict[str, Any]) -> Table:
    """The run after the patch of a case, and after its undo and its retry."""
    table, expect = Table(plan, case["given"]), case["expect"]
    for command in case["before"]:
        assert table.run(command, case["behaviour"])
    patching = Patching(table)
    patches = case["patch"] if isinstance(case["patch"], list) else [case["patch"]]
    commands = [command_of(request_of(patch, case.get("today"))) for patch in patches]
    for command in commands[:-1]:
        patching.apply(command)
    if "refused" in expect:
        with pytest.raises(PatchRefused) as caught:
            patching.apply(commands[-1])
        assert (expect["refused"], expect["at"]) in reasons(caught.value.plan)
    else:
        assert shown(patching.apply(commands[-1])) == {name: sorted(x) for name, x in expect["applied"].items()}
    if case.get("undo"):
        patching.apply(undo_of(table))
    if case.get("retry"):
        table.tell(c.RetryRun())
    return table


def every_order(plan: GoalPlan, case: dict[str, Any]) -> Iterator[Table]:
    """The run once in every order of what is left after the patch."""
    behaviour = {**case["behaviour"], **case.get("behaviour_after", {})}
    todo: list[list[Any]] = [[]]
    while todo:
        way = todo.pop()
        table = patched(plan, case)
        table.way = way
        for command in way:
            table.run(command, behaviour)
        if table.state.over:
            yield table
        else:
            todo += [[*way, command] for command in table.open_commands()]


def compare(table: Table, expect: dict[str, Any], label: str) -> None:
    inputs = table.inputs()
    found = {
        "status": table.state.status,
        "error": table.error(),
        "result": table.result(),
        "facts": table.facts(),
        "step_status": table.statuses(),
        "inputs": {step: inputs.get(step) for step in expect.get("inputs", {})},
        "count_succeeded": {place: succeeded(table)[place] for place in expect.get("count_succeeded", {})},
    }
    for name, value in found.items():
        if name in expect and name not in expect.get("varies", []):
            assert value == expect[name], f"{label}: {name}"
    started = {event.step for event in table.events if isinstance(event, e.StepStarted)}
    assert started.isdisjoint(expect.get("never", [])), label
    assert table.replayed().snapshot() == table.machine.snapshot(), label
