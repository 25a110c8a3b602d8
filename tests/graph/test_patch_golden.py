"""The golden cases of live patches, in every order of the completions that are left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.graph.patch_table import PatchTable, explore
from tests.graph.test_golden import compare
from weft.core.run.patch_plan import PatchPlan
from weft.errors import PatchRefused

CASES = sorted((Path(__file__).parents[1] / "golden" / "patches").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_golden_patch(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    table = PatchTable(case["document"], case.get("input", {}))
    for node, branch in case["before"]:
        table.finish(node, branch, case["steps"])
    command = table.prepare(_with_reason(case["patch"]))
    if "refused" in case["expect"]:
        before = table.machine.snapshot()
        with pytest.raises(PatchRefused) as refused:
            table.tell(command)
        assert table.machine.snapshot() == before
        refusals = refused.value.plan.refusals
        assert f"patch.{case['expect']['refused']}" in [one.code for one in refusals]
        if "at" in case["expect"]:
            assert case["expect"]["at"] in [one.place.partition("/")[0] for one in refusals]
    else:
        plan = table.judge(command)
        table.tell(command)
        assert _consequences(plan) == _expected(case["expect"]["applied"]), plan
        if case.get("undo"):
            table.tell(table.undoing())
    assert table.refolded().snapshot() == table.machine.snapshot()
    for number, ended in enumerate(explore(table, case["steps"])):
        compare(ended, case["expect"], number)
        assert ended.refolded().snapshot() == ended.machine.snapshot()


def _with_reason(patch: dict[str, Any]) -> dict[str, Any]:
    return {"ops": [], "reason": "a test", **patch}


def _consequences(plan: PatchPlan) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for entry in plan.entries:
        match entry.what:
            case "fires":
                found.setdefault("fired", []).append(entry.place)
            case "skips" | "unskips":
                found.setdefault(f"{entry.what[:-1]}ped", []).append([entry.place, entry.to])
            case "reroutes":
                found.setdefault("rerouted", []).append([entry.place, entry.to, entry.detail])
            case "moves":
                found.setdefault("moved", []).append([entry.place, entry.to])
            case "drops":
                found.setdefault("dropped", []).append(entry.place)
            case "starts":
                found.setdefault("started", []).append(entry.place)
    return {name: sorted(values) for name, values in found.items()}


def _expected(applied: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: sorted(values) for name, values in applied.items() if values}
