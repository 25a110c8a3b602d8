"""A node's own output in its own expressions, and what it wrote when its routing then fails."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.graph.documents import codes
from tests.graph.table import Table
from weft.graphs.load import load_graph


def played(nodes: dict[str, Any], outputs: dict[str, list[Any]], given: Any = None) -> Table:
    """A run whose steps give these outputs, call by call."""
    table = Table(load_graph({"nodes": nodes}).graph, {} if given is None else given)
    steps = {node: [{"output": output} for output in calls] for node, calls in outputs.items()}
    table.play({"steps": steps}, seed=0)
    return table


def ran(table: Table) -> list[str]:
    return [event.node for event in table.log if type(event).__name__ == "TaskScheduled"]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["nodes", "ctx"])
def test_save_repeat_and_edges_see_the_output_of_this_very_visit(name: str) -> None:
    own = f"{name}.a.output"
    nodes = {
        "a": {
            "step": "s",
            "save": {"state.seen": f"${{{own}.n}}"},
            "repeat": {"while": f"{own}.n < 3", "at_most": 5},
            "next": [{"when": f"{own}.n == 3", "to": "yes"}, {"to": "no"}],
        },
        "yes": {"step": "s"},
        "no": {"step": "s"},
    }
    table = played(nodes, {"a": [{"n": 1}, {"n": 2}, {"n": 3}]})
    assert table.state.status == "completed"
    assert ran(table) == ["a", "a", "a", "yes"]
    assert table.state.data["seen"] == 3


def test_a_pass_node_sees_what_it_passes_on() -> None:
    nodes = {
        "a": {"pass": True, "with": {"n": 7}, "save": {"state.n": "${nodes.a.output.n}"}, "next": "b"},
        "b": {"step": "s", "with": {"n": "${nodes.a.output.n}"}},
    }
    assert played(nodes, {"b": [{}]}).state.data["n"] == 7


@pytest.mark.parametrize(
    "ways",
    [
        {"next": [{"when": "output.n == 0", "to": "b"}]},  # no_match
        {"next": [{"when": "output.missing.field == 0", "to": "b"}, {"to": "b"}]},  # a condition that fails
        {"repeat": {"while": "true", "at_most": 1}, "next": "b"},  # loop_limit
    ],
)
@pytest.mark.parametrize("work", [{"step": "s"}, {"pass": True, "with": {"n": 1}}])
def test_writes_stay_when_routing_fails_and_the_handler_sees_them(work: dict[str, Any], ways: dict[str, Any]) -> None:
    nodes = {
        "a": {**work, "save": {"state.n": "${output.n}"}, "catch": "h", **ways},
        "b": {"step": "s"},
        "h": {"step": "s", "with": {"saved": "${state.n}", "own": "${nodes.a.output.n}"}},
    }
    table = played(nodes, {"a": [{"n": 1}], "h": [{}]})
    assert table.state.status == "completed"
    assert ran(table)[-1] == "h"
    assert table.state.data["n"] == 1
    scheduled = next(event for event in table.log if getattr(event, "node", "") == "h" and hasattr(event, "input"))
    assert msgspec.json.decode(scheduled.input) == {"saved": 1, "own": 1}


def test_in_a_branch_they_stay_in_its_output() -> None:
    nodes = {
        "a": {"pass": True, "next": [{"to": "b", "for_each": "${input.list}"}]},
        "b": {
            "step": "s",
            "save": {"branch.n": "${nodes.b.output.n}"},
            "next": [{"when": "output.n == 1", "to": "j"}],
            "catch": "h",
        },
        "h": {"step": "s", "next": "j"},
        "j": {"join": "all", "merge": {"how": "append", "into": "state.all"}},
    }
    table = played(nodes, {"b": [{"n": 1}, {"n": 2}], "h": [{}]}, {"list": [0, 0]})
    assert table.state.status == "completed"
    assert sorted(one["n"] for one in table.state.data["all"]) == [1, 2]


def test_the_output_of_the_graph_does_not_see_nodes_and_is_refused() -> None:
    document = {"nodes": {"a": {"step": "s"}}, "output": {"x": "${nodes.a.output}"}}
    assert codes(document) == ["unknown_name"]
