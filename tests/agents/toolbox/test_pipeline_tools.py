"""Agents with Weft's own tools: pipelines, results by reference, a search for tools, and tools made of pipelines."""

from __future__ import annotations

import json
from typing import Any

import pytest

import weft
from weft.testing import World, calls, crash_everywhere

ROWS = [{"airline": f"A{number}", "price": number % 7, "stops": number % 3} for number in range(300)]
CHEAP = [{"step": "table_sort", "field": "price"}, {"step": "top_k", "k": 2}]
FLIGHTS = {"step": "jq_transform", "query": "[range(3) | {price: ., stops: .}]"}


def make_app(*tools: Any, **options: Any) -> tuple[weft.App, weft.Agent[str]]:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def flights() -> list[dict[str, Any]]:
        """Find flights."""
        return ROWS

    return app, app.agent("analyst", model="fast", tools=[*tools, flights], **options)


def pipeline(*steps: dict[str, Any], **more: Any) -> Any:
    return calls(execute_pipeline={"pipeline": list(steps), **more})


def told(world: World, call: int) -> Any:
    return json.loads(world.model_calls("fast")[call].messages[-1].text)


def ref_in(world: World, call: int) -> str:
    return str(told(world, call)["result_ref"])


def test_a_pipeline_gives_a_reference_a_preview_and_a_small_value() -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model("fast", pipeline(FLIGHTS, *CHEAP), "done")

    world.run(analyst("go"))

    found = told(world, 1)
    assert found.pop("result_ref").startswith("cas://sha256:")
    assert found == {
        "result_preview": {
            "type": "dataset",
            "row_count": 2,
            "columns": ["price", "stops"],
            "sample": [{"price": 0, "stops": 0}, {"price": 1, "stops": 1}],
        },
        "value": [{"price": 0, "stops": 0}, {"price": 1, "stops": 1}],
    }


@pytest.mark.parametrize("levels", [96, 97, 98, 99, 100])
@pytest.mark.parametrize("around", ["[.]", "{a: .}"])
def test_a_result_is_told_however_deeply_it_is_nested(levels: int, around: str) -> None:
    """It may come from a request that was performed, so that telling it must not fail."""
    app, analyst = make_app("execute_pipeline", "read_result")
    world = World(app)
    query = f"reduce range({levels - 1}) as $_ ([]; {around})"
    world.fake_model(
        "fast",
        pipeline({"step": "jq_transform", "query": query}),
        lambda request: calls(read_result={"ref": json.loads(request.messages[-1].text)["result_ref"]}),
        "done",
    )

    world.run(analyst("go"))

    assert len(told(world, 1)["result_preview"]["sample"]) == 1
    assert ("value" in told(world, 1)) == (levels < 100)
    assert "error" not in told(world, 2)


def test_a_large_result_is_the_input_of_a_pipeline_by_its_reference_or_as_the_last() -> None:
    app, analyst = make_app("execute_pipeline", result_bytes=1_000)
    world = World(app)
    world.fake_model(
        "fast",
        calls(flights={}),
        lambda request: pipeline(*CHEAP, input_ref=json.loads(request.messages[-1].text)["result_ref"]),
        pipeline({"step": "groupby", "by": "price"}, input_ref="last"),
        "done",
    )

    world.run(analyst("go"))

    assert told(world, 2)["value"] == [ROWS[0], ROWS[7]]
    assert told(world, 3)["value"] == [{"price": 0, "count": 2}]


def test_a_join_reads_a_result_of_the_run() -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model(
        "fast",
        pipeline({"step": "jq_transform", "query": '[{id: 1, name: "a"}]'}),
        pipeline({"step": "jq_transform", "query": "[{id: 1}]"}, {"step": "join", "right": "last", "on": "id"}),
        "done",
    )

    world.run(analyst("go"))

    assert told(world, 2)["value"] == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize("ref", ["last", "cas://sha256:" + "0" * 64, "x"])
def test_a_reference_that_is_not_of_this_run_is_told_back(ref: str) -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model("fast", pipeline(*CHEAP, input_ref=ref), "done")

    world.run(analyst("go"))

    assert "result" in json.dumps(told(world, 1)["error"])


def test_a_reference_of_another_run_is_not_of_this_one() -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model("fast", pipeline(FLIGHTS), "done")
    world.run(analyst("first"))
    ref = ref_in(world, 1)

    world.fake_model("fast", pipeline(*CHEAP, input_ref=ref), calls(read_result={"ref": ref}), "done")
    world.run(analyst("second"))

    both = [told(world, call)["error"]["message"] for call in (3, 4)]
    assert all("There is no result" in message for message in both)


def test_a_wrong_pipeline_is_told_back_and_nothing_is_performed() -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model("fast", pipeline({"step": "top_k", "k": 1}, {"step": "table_sort", "feild": "a"}), "done")

    reply = world.run(analyst("go"))

    assert "/pipeline/1" in told(world, 1)["error"]
    assert reply.usage.tools == 0


def test_a_pipeline_that_fails_is_told_with_its_code() -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model("fast", pipeline({"step": "top_k", "k": 1}), "done")

    world.run(analyst("go"))

    assert told(world, 1)["error"]["code"] == "pipeline.not_rows"


def test_a_pipeline_that_posts_is_asked_for() -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model("fast", pipeline({"step": "http_request", "url": "shop.example", "method": "POST"}), "done")
    run = world.start(analyst("go"))

    run.answer("turn/~0/tools/0/approve", approved=False, by="ann")

    assert run.result().output == "done"
    assert told(world, 1)["error"] == "a person said no"


def test_a_pipeline_that_the_program_calls_irreversible_is_asked_for() -> None:
    app, analyst = make_app(weft.tool("execute_pipeline", effect="irreversible"))
    world = World(app)
    world.fake_model("fast", pipeline(FLIGHTS), "done")
    run = world.start(analyst("go"))

    run.answer("turn/~0/tools/0/approve", approved=False, by="ann")

    assert run.result().output == "done"
    assert told(world, 1)["error"] == "a person said no"


def test_parts_of_a_result_are_read() -> None:
    app, analyst = make_app("execute_pipeline", result_bytes=1_000)
    world = World(app)
    world.fake_model(
        "fast",
        calls(flights={}),
        lambda request: calls(
            read_result={"ref": json.loads(request.messages[-1].text)["result_ref"], "offset": 298, "limit": 5}
        ),
        calls(read_result={"ref": "last"}),
        "done",
    )

    world.run(analyst("go"))

    assert told(world, 2) == {"rows": ROWS[298:], "offset": 298, "row_count": 300, "more": False}
    shown = told(world, 3)
    assert shown.get("more") or "result_ref" in shown


def test_reading_stands_beside_any_tools() -> None:
    app, analyst = make_app()
    world = World(app)
    world.fake_model("fast", "done")

    world.run(analyst("go"))

    assert [tool.name for tool in world.model_calls("fast")[0].tools] == ["flights", "read_result"]


# --- searching and calling ----------------------------------------------------------------------------------------


def test_a_tool_is_found_by_words_and_called_through_call_tool() -> None:
    app, analyst = make_app("search_tools")
    world = World(app)
    world.fake_model("fast", calls(search_tools={"query": "flight"}), calls(call_tool={"name": "flights"}), "done")

    world.run(analyst("go"))

    assert [found["name"] for found in told(world, 1)] == ["flights"]
    assert told(world, 2) == ROWS or "result_ref" in told(world, 2)


@pytest.mark.parametrize("name", ["call_tool", "nothing_like_it"])
def test_a_tool_that_cannot_be_called_is_told_back(name: str) -> None:
    app, analyst = make_app("search_tools")
    world = World(app)
    world.fake_model("fast", calls(call_tool={"name": name, "arguments": {}}), "done")

    world.run(analyst("go"))

    assert "error" in told(world, 1)


def test_an_approval_behind_call_tool_is_that_of_the_tool() -> None:
    app, _ = make_app()

    @app.step(effect="irreversible")
    async def refund(cents: int) -> str:
        return f"refunded {cents}"

    careful = app.agent("careful", model="fast", tools=["search_tools", refund])
    world = World(app)
    world.fake_model("fast", calls(call_tool={"name": "refund", "arguments": {"cents": 5}}), "done")
    run = world.start(careful("go"))

    run.answer("turn/~0/tools/0/approve", by="ann")

    assert run.result().output == "done"
    assert [call.args for call in world.calls(refund)] == [{"cents": 5}]


# --- tools made of pipelines --------------------------------------------------------------------------------------


def use(world: World, analyst: Any, k: int) -> None:
    world.fake_model("fast", pipeline(FLIGHTS, {"step": "top_k", "k": k}), "done")
    world.run(analyst("go"))


def test_a_shape_that_succeeds_in_two_runs_becomes_a_tool_that_is_found_and_called() -> None:
    app, analyst = make_app("execute_pipeline", "search_tools")
    world = World(app)
    use(world, analyst, 1)
    use(world, analyst, 2)
    before = len(world.model_calls("fast"))
    world.fake_model(
        "fast",
        calls(search_tools={"query": "top"}),
        calls(call_tool={"name": "jq_top_k", "arguments": {"query": "[{n: 1}, {n: 2}]", "k": 1}}),
        calls(call_tool={"name": "jq_top_k", "arguments": {"k": 1}}),
        "done",
    )

    world.run(analyst("go"))

    found = next(tool for tool in told(world, before + 1) if tool["name"] == "jq_top_k")
    assert found["kind"] == "pipeline"
    assert found["schema"]["required"] == ["query", "k"]
    assert told(world, before + 2)["value"] == [{"n": 1}]
    assert "query is missing" in told(world, before + 3)["error"]["message"]


def test_the_same_run_counts_once() -> None:
    app, analyst = make_app("execute_pipeline", "search_tools")
    world = World(app)
    once = pipeline(FLIGHTS, {"step": "top_k", "k": 1})
    world.fake_model("fast", once, once, calls(search_tools={"query": "jq"}), "done")

    world.run(analyst("go"))

    assert all(tool["name"] != "jq_top_k" for tool in told(world, 3))


@pytest.mark.proof
def test_nothing_is_lost_or_counted_twice_wherever_it_crashes() -> None:
    app, analyst = make_app("execute_pipeline", "search_tools")

    def scenario(world: World) -> None:
        use(world, analyst, 1)
        world.fake_model("fast", calls(search_tools={"query": "jq top"}), "done")
        world.run(analyst("search"))
        assert not any(tool["name"] == "jq_top_k" for tool in told(world, -1))

    assert crash_everywhere(app, scenario) > 5


def test_a_session_is_taken_and_means_nothing() -> None:
    app, analyst = make_app("execute_pipeline")
    world = World(app)
    world.fake_model(
        "fast", pipeline(FLIGHTS, session_id="s-1"), pipeline(*CHEAP, input_ref="last", session_id="s-2"), "ok"
    )

    world.run(analyst("go"))

    assert [row["price"] for row in told(world, 2)["value"]] == [0, 1]
