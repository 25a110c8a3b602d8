"""Scripts in Lua and Ale as nodes of a graph."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.graph.documents import refused
from weft.core.graph.model import ScriptWork
from weft.graphs.load import load_graph
from weft.testing import World

LUA = "return {total = qty * price}"
ALE = "{:total (* qty price)}"


def shop(script: dict[str, Any], **node: Any) -> dict[str, Any]:
    return {
        "name": "shop",
        "nodes": {
            "sum": {"script": script, "next": "end", **node},
            "end": {"pass": True, "save": {"state.given": "${output}"}},
        },
        "output": {"given": "${state.given}"},
    }


@pytest.mark.parametrize(
    "script",
    [{"lua": LUA}, {"ale": ALE}, {"language": "lua", "script": LUA}, {"lang": "ale", "source": ALE}],
)
def test_a_script_sees_the_fields_of_its_input_and_gives_an_object(script: dict[str, Any]) -> None:
    app = weft.App("memory://")
    graph = app.graph(shop(script, **{"with": {"qty": "${input.qty}", "price": 20}}))
    assert app.run(graph, {"qty": 2}) == {"given": {"total": 40}}


@pytest.mark.parametrize("script", [{"lua": "return input.qty + 1"}, {"ale": "(+ (:qty input) 1)"}])
def test_without_a_mapping_it_sees_what_arrives_and_one_value_is_the_result(script: dict[str, Any]) -> None:
    app = weft.App("memory://")
    assert app.run(app.graph(shop(script)), {"qty": 2}) == {"given": {"result": 3}}


def test_a_script_is_a_task_that_is_recorded_and_not_repeated() -> None:
    app = weft.App("memory://")
    graph = app.graph(shop({"lua": LUA}, **{"with": {"qty": 1, "price": 2}}))
    world = World(app)
    run = world.start(graph, {})
    assert run.result() == {"given": {"total": 2}}
    (task,) = [event for event in run.events if event.kind == "task_scheduled"]
    assert task.data["step"] == "weft.script"


def test_the_failure_of_a_script_names_its_node() -> None:
    app = weft.App("memory://")
    with pytest.raises(weft.RunFailed, match="in sum") as failed:
        app.run(app.graph(shop({"lua": "error('no')"})), {})
    assert failed.value.failure.step == "sum"
    assert "weft.script" not in str(failed.value)
    assert failed.value.failure.traceback == "", "no line of it is the user's"


@pytest.mark.parametrize("script", [{"lua": "error('no')"}, {"ale": '(raise "no")'}, {"lua": "while true do end"}])
def test_a_script_that_fails_fails_its_node_once(script: dict[str, Any]) -> None:
    app = weft.App("memory://")
    document = shop(script, retry=5, catch="caught")
    document["nodes"]["caught"] = {
        "pass": True,
        "save": {"state.given": "${{'code': error.code, 'attempts': error.attempts}}"},
    }
    given = app.run(app.graph(document), {})["given"]
    assert given["attempts"] == 1
    assert given["code"].startswith(("script.", "limit."))


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("return 1", "wrong_type"),
        ({"lua": "return ("}, "bad_script"),
        ({"ale": "(+ 1 unbound)"}, "bad_script"),
        ({"ruby": "1"}, "unknown_field"),
        ({"language": "ruby", "script": "1"}, "unknown_word"),
        ({"language": "lua"}, "missing_field"),
        ({}, "missing_field"),
    ],
)
def test_what_is_no_script_is_refused_with_the_document(script: Any, code: str) -> None:
    found = refused({"nodes": {"a": {"script": script}}})
    assert f"graph.{code}" in [finding.code for finding in found], found
    assert found[0].path.startswith("nodes.a.script")


def test_the_seeds_spelling_is_read_too() -> None:
    document = {"nodes": [{"id": "a", "type": "script", "config": {"lua": "return 1"}}]}
    assert load_graph(document).graph.nodes["a"].work == ScriptWork("lua", "return 1")
