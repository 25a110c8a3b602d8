"""Fields of the input and the state: defaults that are declared, and fields that nothing declares or writes."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.graph.defaults import with_defaults
from weft.graphs.check import check_document
from weft.testing import World

INPUT = {
    "n": "integer",
    "times": {"type": "integer", "default": 3},
    "where": {"type": "object", "properties": {"country": {"type": "string", "default": "DE"}}, "default": {}},
}


def document(**fields: Any) -> dict[str, Any]:
    return {
        "name": "g",
        "input": INPUT,
        "nodes": {
            "a": {"pass": True, "save": {"state.arrived": "${output.times}"}, "next": "b"},
            "b": {"pass": True, "save": {"state.sum": "${input.n * input.times}"}},
        },
        "output": {"sum": "${state.sum}", "arrived": "${state.arrived}", "where": "${input.where}"},
        **fields,
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": 2}, {"sum": 6, "arrived": 3, "where": {}}),
        ({"n": 2, "times": 5}, {"sum": 10, "arrived": 5, "where": {}}),
        ({"n": 2, "where": {"city": "Bonn"}}, {"sum": 6, "arrived": 3, "where": {"city": "Bonn", "country": "DE"}}),
    ],
)
def test_a_field_that_is_left_out_has_its_default(given: dict[str, Any], expected: dict[str, Any]) -> None:
    app = weft.App("memory://")
    assert World(app).start(app.graph(document()), given).result() == expected


def test_a_child_has_the_defaults_of_its_own_graph() -> None:
    app = weft.App("memory://")
    app.graph(document())
    parent = app.graph({
        "name": "p",
        "nodes": {"call": {"workflow": "g", "with": {"n": 4}, "save": {"state.sum": "${output.sum}"}}},
    })  # fmt: skip
    assert World(app).start(parent, {}).result() == {"sum": 12}


def test_a_default_stays_out_of_the_comparison_of_ids() -> None:
    app = weft.App("memory://")
    graph = app.graph(document())
    world = World(app)
    first = world.start(graph, {"n": 2}, id="one")
    assert first.result()["sum"] == 6
    assert world.start(graph, {"n": 2}, id="one").id == first.id
    with pytest.raises(weft.IdTaken):
        world.start(graph, {"n": 3}, id="one")


def test_a_wrong_value_is_still_refused_and_a_needed_one_still_missed() -> None:
    app = weft.App("memory://")
    graph = app.graph(document())
    for wrong in ({"n": 2, "times": "x"}, {"times": 2}):
        with pytest.raises(weft.BadValue):
            app.run(graph, wrong)


def test_only_what_is_left_out_is_added() -> None:
    schema = {"properties": {"a": {"default": 1}, "b": {"properties": {"c": {"default": 2}}}}}
    given = {"a": None, "b": {"c": 3}}
    assert with_defaults(schema, given) is given
    assert with_defaults(schema, {"b": {}}) == {"a": 1, "b": {"c": 2}}
    assert with_defaults(schema, {"b": 5}) == {"a": 1, "b": 5}
    assert with_defaults(None, 7) == 7


def warnings(given: dict[str, Any]) -> dict[str, str]:
    checked = check_document(given)
    assert checked.outcome == "sound", checked.findings
    return {f"{found.code} {found.path}": found.message for found in checked.findings}


def test_check_reports_fields_that_nothing_declares_or_writes() -> None:
    given = document()
    given["nodes"]["b"]["with"] = {"x": "${input.m}", "y": "${state.totl}"}
    given["nodes"]["b"]["next"] = [{"when": "input.tims > 1", "to": "c"}, {"to": "d"}]
    given["nodes"]["c"] = {"pass": True}
    given["nodes"]["d"] = {"pass": True, "save": {"state.total": "${state.sum}"}}
    given["output"]["late"] = "${state.arived}"

    found = warnings(given)

    assert set(found) == {
        "graph.unknown_input nodes.b.with.x",
        "graph.unknown_state nodes.b.with.y",
        "graph.unknown_input nodes.b.next[0].when",
        "graph.unknown_state output.late",
    }
    assert found["graph.unknown_state output.late"].endswith('Did you mean "arrived"?')


def test_declared_written_and_merged_fields_are_known() -> None:
    given: dict[str, Any] = {
        "input": {"list": "integer[]"},
        "state": {"declared": "any", "all": "any"},
        "nodes": {
            "a": {"pass": True, "next": [{"to": "b", "for_each": "${input.list}"}]},
            "b": {"pass": True, "save": {"branch.only": 1}, "next": "j"},
            "j": {"join": "all", "merge": {"how": "append", "into": "state.all"}, "next": "z"},
            "z": {"pass": True, "with": {"x": "${state.all}", "y": "${state.declared}"}},
        },
    }
    assert warnings(given) == {}
    given["nodes"]["z"]["with"]["z"] = "${state.only}"
    assert set(warnings(given)) == {"graph.unknown_state nodes.z.with.z"}


def test_an_input_that_nothing_declares_may_have_any_field() -> None:
    given = {"nodes": {"a": {"pass": True, "with": {"x": "${input.anything}", "y": "${input}"}}}}
    assert warnings(given) == {}
