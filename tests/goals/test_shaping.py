"""What a step is handed and gives, shaped by its document: jpath, mappings of inputs, metadata of the run."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.goal.checks import BadStep
from weft.testing import World


def app_with(**step: Any) -> weft.App:
    """A step `s` that gives what it was handed as `inside`."""
    app = weft.App("memory://")
    app.steps({"steps": {"s": {"script": {"ale": "{:got inside}"}, "gives": ["got"], **step}}})
    return app


def got(given: dict[str, Any], **step: Any) -> Any:
    app = app_with(**step)
    return World(app).run(app.goal("g", "s"), given)["got"]


# --- jpath -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "order", "runs"),
    [
        ("$.order.total", {"total": None}, True),  # an explicit null is a node
        ("$.order.total", {}, False),
        ("$.order.lines[?@.qty > 2]", {"lines": [{"qty": 1}, {"qty": 3}]}, True),
        ("$.order.lines[?@.qty > 2]", {"lines": [{"qty": 1}]}, False),
        ("@.total > 10", {"total": 20}, True),  # a bare filter is over what the inputs hold
        ("@.total > 10", {"total": 5}, False),
        ("$.note", {}, False),  # an optional that is absent is no node
    ],
)
def test_a_predicate_in_jpath_holds_if_it_selects_something(query: str, order: Any, runs: bool) -> None:
    app = app_with(
        needs={"order": {"type": "object", "name": "inside"}, "note": {"optional": True}},
        when={"jpath": query.replace("$.order", "$.inside")},
    )
    facts = World(app).run(app.goal("g", "s"), {"order": order})

    assert ("got" in facts.result) is runs


def test_a_predicate_in_jpath_may_look_at_each_item() -> None:
    app = weft.App("memory://")
    step = {
        "script": {"ale": "{:kept line}"},
        "needs": {"line": {"type": "array", "each": True}},
        "gives": ["kept"],
        "when": {"jpath": "$.line[?@ > 1]"},
    }
    app.steps({"steps": {"keep": step}})

    kept = World(app).run(app.goal("g", "keep"), {"line": [[1], [2]]})["kept"]
    assert [entry["kept"] for entry in kept] == [[2]]


@pytest.mark.parametrize(("kind", "runs"), [({"kind": "mail"}, True), ({"kind": "sms"}, False), ("mail", False)])
def test_a_match_in_jpath_looks_at_the_value(kind: Any, runs: bool) -> None:
    app = app_with(needs={"channel": {"name": "inside", "match": {"jpath": '$[?@ == "mail"]'}}})
    facts = World(app).run(app.goal("g", "s"), {"channel": kind})

    assert ("got" in facts.result) is runs


@pytest.mark.parametrize(
    ("query", "expected"),
    [("$.user.name", "Ada"), ("$.tags[*]", ["a", "b"]), ("$.tags[?@ == 'a']", "a"), ("$", {"user": {"name": "Ada"}})],
)
def test_a_mapping_in_jpath_gives_one_node_or_a_list_of_them(query: str, expected: Any) -> None:
    value: Any = {"user": {"name": "Ada"}, "tags": ["a", "b"]} if query != "$" else expected
    assert got({"a": value}, needs={"a": {"name": "inside", "mapping": {"jpath": query}}}) == expected


def test_an_output_that_jpath_does_not_find_is_not_given() -> None:
    app = app_with(
        needs={"a": {"name": "inside"}},
        gives={"found": {"mapping": {"jpath": "$.got.x"}}, "lost": {"mapping": {"jpath": "$.got.y"}}},
    )

    assert World(app).run(app.goal("g", "s"), {"a": {"x": 1}}).result == {"found": 1}


@pytest.mark.parametrize("query", ["$.", "$[?", "@.a >", "", "and"])
def test_jpath_that_cannot_be_read_is_refused_at_the_door(query: str) -> None:
    with pytest.raises(BadStep):
        app_with(needs={"a": {"name": "inside"}}, when={"jpath": query})


def test_a_step_is_not_a_query() -> None:
    with pytest.raises(BadStep, match="must be in Lua or Ale"):
        app_with(script={"jpath": "$.a"}, needs=["a"])


# --- mappings of inputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mapping",
    [
        "value * 2",
        "inside * 2",
        {"cel": "inside * 2"},
        {"lua": "return inside * 2"},
        {"lua": "return value * 2"},
        {"ale": "(* inside 2)"},
        {"ale": "(* value 2)"},
    ],
)
def test_an_input_is_made_by_a_script_under_its_inner_name(mapping: Any) -> None:
    assert got({"n": 4}, needs={"n": {"type": "number", "name": "inside", "mapping": mapping}}) == 8


def test_the_spelling_of_the_seeds_maps_inputs_too() -> None:
    app = weft.App("memory://")
    attribute = {
        "role": "required",
        "type": "number",
        "required": {"mapping": {"name": "inside", "script": {"language": "ale", "script": "(+ inside 1)"}}},
    }
    step = {"id": "s", "type": "script", "script": {"language": "ale", "script": "{:got inside}"}}
    app.steps({**step, "name": "S", "attributes": {"n": attribute, "got": {"role": "output"}}})

    assert World(app).run(app.goal("g", "s"), {"n": 4})["got"] == 5


def test_a_default_is_mapped_too_and_a_list_before_it_is_taken_apart() -> None:
    need = {"default": 3, "name": "inside", "mapping": {"ale": "(+ inside 1)"}}
    assert got({}, needs={"n": need}) == 4
    each = {"type": "object", "name": "inside", "each": True, "mapping": {"jpath": "$.lines"}}
    found = got({"order": {"lines": [1, 2]}}, needs={"order": each})
    assert [entry["got"] for entry in found] == [1, 2]


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ({"jpath": "$.x"}, "selects nothing"),
        ({"lua": "error('no')"}, "no"),
        ("value.x.y", "value.x"),
        ("1 / 0", "zero"),
    ],
)
def test_an_input_that_cannot_be_made_fails_the_step(mapping: Any, why: str) -> None:
    with pytest.raises(weft.RunFailed, match="bad_input: n"):
        got({"n": {"a": 1}}, needs={"n": {"name": "inside", "mapping": mapping}})


@pytest.mark.parametrize(
    "need",
    [
        {"name": "inside", "mapping": {"ale": "(+ other 1)"}},
        {"name": "inside", "mapping": {"lua": "return ("}},
        {"const": 1, "name": "inside", "mapping": "value"},
        {"const": 1, "meta": "run_id", "name": "inside"},
    ],
    ids=["name", "syntax", "const", "both"],
)
def test_a_mapping_that_cannot_work_is_refused_at_the_door(need: Any) -> None:
    with pytest.raises(BadStep):
        app_with(needs={"n": need, "other": "number"})


# --- metadata ----------------------------------------------------------------------------------------------------


def told(**needs: Any) -> tuple[dict[str, Any], str]:
    app = weft.App("memory://")
    fields = " ".join(f":{name} {name}" for name in needs)
    app.steps({"steps": {"s": {"script": {"ale": f"{{:got {{{fields}}}}}"}, "needs": needs, "gives": ["got"]}}})
    world = World(app)
    run = world.start(app.goal("g", "s"), {"users": ["a", "b"]})
    return run.result()["got"], run.id


def test_a_step_is_told_about_its_run_in_either_spelling() -> None:
    found, run_id = told(
        run={"meta": "run_id"}, flow={"meta": "flow_id"}, me={"meta": "step_id"}, up={"meta": "parent_flow_id"}
    )
    assert found == {"run": run_id, "flow": run_id, "me": "s", "up": None}

    app = weft.App("memory://")
    attributes = {"flow": {"role": "meta", "meta": {"key": "flow_id"}}, "got": {"role": "output"}}
    step = {"id": "s", "name": "S", "type": "script", "script": {"language": "ale", "script": "{:got flow}"}}
    app.steps({**step, "attributes": attributes})
    run = World(app).start(app.goal("g", "s"), {})
    assert run.result()["got"] == run.id


def test_every_item_has_a_key_of_its_own_which_is_the_one_that_services_see() -> None:
    app = weft.App("memory://")
    needs = {"user": {"type": "array", "each": True}, "key": {"meta": "receipt_token"}}
    app.steps({"steps": {"s": {"step": "note", "needs": needs, "gives": ["got"]}}})

    @app.step
    async def note(user: str, key: str) -> dict[str, bool]:
        return {"got": key == weft.task().key}

    found = World(app).run(app.goal("g", "s"), {"user": ["a", "b"]})["got"]
    assert [entry["got"] for entry in found] == [True, True]


@pytest.mark.parametrize(
    "step",
    [
        {"needs": {"inside": {"meta": "webhook_url"}}},
        {"needs": {"inside": {"meta": "run_id"}}, "when": "inside != ''"},
        {"needs": {"inside": {"meta": "run_id", "each": True}}},
    ],
    ids=["unknown", "predicate", "each"],
)
def test_metadata_that_nobody_has_yet_is_refused(step: dict[str, Any]) -> None:
    with pytest.raises(BadStep):
        app_with(**step)


@pytest.mark.parametrize(
    ("predicate", "runs"),
    [
        ({"ale": "inside"}, True),
        ({"ale": "false"}, False),
        ({"lua": "return inside"}, False),
        ({"lua": "return 0"}, True),
    ],
)
def test_each_language_has_its_own_truth(predicate: dict[str, str], runs: bool) -> None:
    app = app_with(needs={"a": {"name": "inside"}}, when=predicate)
    facts = World(app).run(app.goal("g", "s"), {"a": None})

    assert ("got" in facts.result) is runs
