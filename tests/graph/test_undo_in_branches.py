"""What a node's ``undo.with`` may look at: all that the node itself could, as it was then."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.patterns.kit import Bench


def taken_back(given: str) -> list[Any]:
    """What `u` is given for each of two branches, newest first, if the graph says so."""
    document = {
        "nodes": {
            "first": {"step": "first", "next": [{"to": "b", "for_each": "${input.xs}", "as": "x"}]},
            "b": {"step": "b", "with": {"input": "${x}"}, "undo": {"step": "u", "with": {"input": given}}, "next": "j"},
            "j": {"join": "all", "next": "z"},
            "z": {"step": "z"},
        }
    }
    bench = Bench(document, {"b": lambda x: f"done {x}", "z": weft.Critical("no")})
    with pytest.raises(weft.RunFailed, match="no in z"):
        bench.run(xs=["one", "two"])
    return sorted(bench.given("u"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("${output}", ["done one", "done two"]),
        ("${size(input.xs)}", [2, 2]),
        ("${x}", ["one", "two"]),
        ("${branch.index}", [0, 1]),
        ("${nodes.first.output}", ["first", "first"]),
    ],
)
def test_an_undo_sees_what_its_node_saw(given: str, expected: list[Any]) -> None:
    assert taken_back(given) == expected
