"""The golden cases of goals, in the order they name or in every order there is."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.goal.documents import catalogue_of, steps_of
from tests.goal.table import Table
from weft.core.goal.checks import BadStep
from weft.core.goal.plan import GoalPlan
from weft.core.goal.planner import make_plan
from weft.errors import UsageError

CASES = sorted((Path(__file__).parents[1] / "golden" / "goals").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_golden_case(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    expect = case["expect"]
    steps = steps_of(case["steps"])
    if "catalogue_error" in expect:
        for order in itertools.permutations(steps):
            with pytest.raises(BadStep):
                catalogue_of(order)
        return
    random.Random(path.stem).shuffle(steps)
    plan = make_plan(catalogue_of(steps), case["goals"], case["given"])
    if "plan" in expect:
        assert plan_shown(plan) == expect["plan"]
    if "refused" in expect:
        with pytest.raises(UsageError):
            Table(plan, case["given"])
        return
    if "order" in case:
        table = Table(plan, case["given"])
        compare(table, expect, table.play(case["behaviour"], order=case["order"]), "as named")
        return
    ways = 0
    for ways, table in enumerate(every_order(plan, case), 1):
        compare(table, expect, 0, f"way {ways}: {table.way}")
    assert ways >= case["explored"]["ends"]


def every_order(plan: GoalPlan, case: dict[str, Any]) -> Iterator[Table]:
    """The run once in every order of completions and timers."""
    todo: list[list[Any]] = [[]]
    while todo:
        way = todo.pop()
        table = Table(plan, case["given"])
        table.way = way
        for command in way:
            table.run(command, case["behaviour"])
        if table.state.over:
            yield table
        else:
            todo.extend([*way, command] for command in table.open_commands())


def plan_shown(plan: GoalPlan) -> dict[str, Any]:
    excluded: dict[str, dict[str, list[str]]] = {"missing": {}, "satisfied": {}, "blocked": {}}
    for step, found in plan.excluded.items():
        excluded[found.why][step] = found.by
    return {
        "steps": sorted(plan.steps),
        "required": plan.required,
        "conditional": plan.conditional,
        "excluded": excluded,
    }


def compare(table: Table, expect: dict[str, Any], ignored: int, seed: str) -> None:
    varies = expect.get("varies", [])
    names = table.names
    started = set(table.inputs())
    found: dict[str, Any] = {
        "status": table.state.status,
        "error": table.error(),
        "result": table.result(),
        "facts": table.facts(),
        "step_status": table.statuses(),
        "events": names,
        "ignored": ignored,
    }
    for key, value in found.items():
        if key in expect and key not in varies:
            assert value == {**value, **expect[key]} if key == "step_status" else value == expect[key], (key, seed)
    for step, inputs in expect.get("inputs", {}).items():
        assert table.inputs()[step] == inputs, seed
    assert not started & set(expect.get("never", []))
    for step, reason in expect.get("reasons", {}).items():
        assert table.state.steps[step].why == reason
    counts = Counter(names)
    for name, count in expect.get("count_events", {}).items():
        assert counts[name] == count, (name, seed)
    if "last_events" in expect:
        assert names[-len(expect["last_events"]) :] == expect["last_events"]
    wanted = expect.get("has_event", [])
    assert set([wanted] if isinstance(wanted, str) else wanted) <= set(names)


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 36
