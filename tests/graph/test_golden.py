"""The golden cases of graphs, in the order they name or in many drawn ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.graph.table import Table
from weft.errors import BadGraph
from weft.graphs.load import load_graph

CASES = sorted((Path(__file__).parents[1] / "golden" / "graphs").glob("*.json"))
SEEDS = 20


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_golden_case(path: Path) -> None:
    case: dict[str, Any] = json.loads(path.read_text())
    expect = case["expect"]
    if "refused" in expect:
        with pytest.raises(BadGraph):
            load_graph(case["document"])
        return
    loaded = load_graph(case["document"])
    for seed in range(1 if "order" in case else SEEDS):
        table = Table(loaded.graph, case.get("input", {}))
        table.play(case, seed)
        compare(table, expect, seed)


def compare(table: Table, expect: dict[str, Any], seed: int) -> None:
    varies = expect.get("varies", [])
    state = table.state
    found = {
        "status": state.status,
        "error": state.failure.code or state.failure.type if state.failure is not None else None,
        "state": state.data,
        "executed": state.executed,
    }
    for key in ("status", "error", "state", "executed"):
        if key in expect and key not in varies:
            assert found[key] == expect[key], f"{key} (seed {seed})"
