"""Pipelines as a way to perform steps: of an app, in nodes of graphs, in step documents."""

import asyncio
from typing import Any

import pytest

import weft
from weft.core.goal.checks import BadStep
from weft.testing import World

FLIGHTS = [
    {"airline": "A", "price": 30, "stops": 2},
    {"airline": "B", "price": 20, "stops": 0},
    {"airline": "C", "price": 10, "stops": 1},
]
CHEAPEST: list[dict[str, Any]] = [
    {"step": "table_filter", "condition": {"field": "stops", "op": "<=", "value": 1}},
    {"step": "table_sort", "field": "price"},
    {"step": "top_k", "k": 1},
]


def test_a_pipeline_is_a_step_of_a_workflow() -> None:
    app = weft.App()
    cheapest = app.pipeline("cheapest", CHEAPEST)

    @app.workflow
    async def book(flights: list[dict[str, Any]]) -> str:
        found = await cheapest(flights)
        return str(found[0]["airline"])

    world = World(app)
    assert world.run(book(FLIGHTS)) == "C"
    assert len(world.calls(cheapest)) == 1


def test_a_workflow_catches_a_pipeline_that_failed_and_knows_which_step() -> None:
    app = weft.App()
    sort = app.pipeline("sort", [{"step": "top_k", "k": 5}, {"step": "table_sort", "field": "v"}])

    @app.workflow
    async def guarded(rows: list[dict[str, Any]]) -> list[Any]:
        try:
            return list(await sort(rows))
        except weft.PipelineFailed as failed:
            return [failed.code, failed.index, failed.failure.attempts]

    assert World(app).run(guarded([{"v": []}])) == ["pipeline.bad_value", 1, 1]


def test_a_pipeline_with_a_mistake_is_refused_when_it_is_registered() -> None:
    app = weft.App()
    with pytest.raises(weft.PipelineFailed) as refused:
        app.pipeline("wrong", [{"step": "top_k", "k": 1}, {"step": "top_k"}])
    assert (refused.value.code, refused.value.index) == ("pipeline.bad_argument", 1)

    app.pipeline("right", [{"step": "top_k", "k": 1}])
    with pytest.raises(weft.NameTaken):
        app.pipeline("right", [{"step": "top_k", "k": 2}])


def test_a_pipeline_is_a_plain_function_outside_a_workflow() -> None:
    cheapest = weft.App().pipeline("cheapest", CHEAPEST)

    assert asyncio.run(cheapest(FLIGHTS)) == [FLIGHTS[2]]


def test_a_node_is_a_pipeline_over_data() -> None:
    app = weft.App()
    graph = app.graph({
        "weft": "graph/1",
        "name": "pick",
        "input": {"flights": "array", "most": "number"},
        "nodes": {
            "first": {
                "pipeline": [{"step": "top_k", "k": "${input.most}"}],
                "with": {"data": "${input.flights}"},
                "save": {"state.first": "${output}"},
            }
        },
        "state": {"first": "array"}, "output": {"first": "${state.first}"},
    })  # fmt: skip

    assert World(app).run(graph, {"flights": FLIGHTS, "most": 2}) == {"first": FLIGHTS[:2]}


def test_a_node_without_an_input_of_its_own_takes_what_arrives() -> None:
    app = weft.App()
    graph = app.graph({
        "weft": "graph/1",
        "name": "count",
        "input": {"n": "number"},
        "nodes": {
            "only": {
                "pipeline": [{"step": "jq_transform", "query": "[.n] | length"}],
                "save": {"state.n": "${output}"},
            }
        },
        "state": {"n": "number"}, "output": {"n": "${state.n}"},
    })  # fmt: skip

    assert World(app).run(graph, {"n": 3}) == {"n": 1}


def test_all_mistakes_in_the_pipelines_of_a_document_are_findings() -> None:
    with pytest.raises(weft.BadGraph) as refused:
        weft.App().graph({
            "weft": "graph/1",
            "name": "wrong",
            "nodes": {"a": {"pipeline": [{"step": "top_k"}, {"step": "top"}, {"step": "top_k", "k": "${input}"}]}},
        })  # fmt: skip

    assert [(finding.code, finding.path) for finding in refused.value.findings] == [
        ("graph.bad_pipeline", "nodes.a.pipeline[0]"),
        ("graph.bad_pipeline", "nodes.a.pipeline[1]"),
    ]


def test_a_value_of_a_template_that_does_not_fit_fails_the_node_with_the_index() -> None:
    app = weft.App()
    graph = app.graph({
        "weft": "graph/1",
        "name": "late",
        "input": {"k": "string"},
        "nodes": {"a": {"pipeline": [{"step": "top_k", "k": 1}, {"step": "top_k", "k": "${input.k}"}]}},
    })  # fmt: skip

    with pytest.raises(weft.RunFailed) as failed:
        World(app).run(graph, {"k": "x"})
    assert failed.value.failure.code == "pipeline.bad_argument"
    assert "/pipeline/1" in failed.value.failure.message


DOCUMENT: dict[str, Any] = {
    "weft": "steps/1",
    "steps": {
        "cheap": {
            "pipeline": CHEAPEST,
            "needs": {"flights": {"type": "array"}},
            "gives": {"cheap": {"type": "array", "whole": True}},
        }
    },
}


def test_a_step_document_performs_a_pipeline_for_a_goal() -> None:
    app = weft.App()
    app.steps(DOCUMENT)
    goal = app.goal("travel", "cheap")

    assert World(app).run(goal, {"flights": FLIGHTS})["cheap"] == [FLIGHTS[2]]


def test_a_mistake_in_a_step_document_is_a_finding() -> None:
    wrong = {"weft": "steps/1", "steps": {"cheap": {"pipeline": [{"step": "top_k", "k": 0}], "gives": ["cheap"]}}}
    with pytest.raises(BadStep) as refused:
        weft.App().steps(wrong)

    findings: Any = refused.value.context["findings"]
    assert "goal.bad_pipeline" in {finding.code for finding in findings}
