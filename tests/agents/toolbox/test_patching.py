"""The tool ``patch_workflow``: an agent adds nodes to the run that it is a node of, as far as it may."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.ports.run_query import RunQuery
from weft.testing import World, calls, crash_everywhere
from weft.testing.world import SimRun

ADD = [
    {"op": "add", "path": "/nodes/-", "value": {"id": "mail", "step": "ping", "with": {"word": "mail"}}},
    {"op": "add", "path": "/edges/-", "value": {"from": "plan", "to": "mail"}},
]
ALLOW = {"allow": "patch", "names": ["/nodes/-", "/edges/-"], "to": ["agent:planner"]}


def make_app(*rules: dict[str, Any]) -> weft.App:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})
    app.model("fast", url="http://127.0.0.1:1/v1")

    @app.step
    async def ping(word: str = "") -> str:
        return word

    app.agent("planner", model="fast", tools=["patch_workflow"], approvers=["role:ops"])
    app.graph(
        {
            "name": "flow",
            "nodes": [{"id": "plan", "agent": "planner"}, {"id": "done", "step": "ping", "with": {"word": "done"}}],
            "edges": [{"from": "plan", "to": "done"}],
        }
    )
    return app


def patching(operations: list[dict[str, Any]] = ADD, **more: Any) -> Any:
    return calls(patch_workflow={"patch_spec": {"operations": operations, "description": "tell them"}, **more})


def start(world: World) -> SimRun[Any]:
    return world.start(world.app.registered.newest("flow"), {}, id="flow-1")  # type: ignore[arg-type]


def agent_run(world: World) -> SimRun[Any]:
    """The run of the agent below the graph."""
    page = world.perform(lambda: world._service.search(RunQuery(workflow="planner", internal=True)))
    run_id = page.rows[0].id
    return SimRun(world, run_id, lambda: world.app.get(run_id))


def told(world: World, number: int = 1) -> str:
    return world.model_calls("fast")[number].messages[-1].text


def test_what_the_policy_allows_is_applied_to_the_run() -> None:
    world = World(make_app(ALLOW))
    world.fake_model("fast", patching(), "Done.")

    start(world).result()

    assert sorted(call.args["word"] for call in world.calls("ping")) == ["done", "mail"]
    assert '"applied":true' in told(world)


def test_without_a_rule_people_are_asked() -> None:
    world = World(make_app())
    world.fake_model("fast", patching(), "Done.")
    run = start(world)
    world.settle()
    agent = agent_run(world)
    (question,) = agent.waiting_for()

    agent.answer(question.location, by="ops-1")
    run.result()

    assert len(world.calls("ping")) == 2


def test_a_no_is_told_to_the_model() -> None:
    world = World(make_app())
    world.fake_model("fast", patching(), "Done.")
    run = start(world)
    world.settle()
    agent = agent_run(world)
    agent.answer(agent.waiting_for()[0].location, approved=False, reason="not now", by="ops-1")

    run.result()

    assert "not now" in told(world)
    assert len(world.calls("ping")) == 1


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "replace", "path": "/nodes/done/step", "value": "ping2"}, "done was not added by this agent"),
        ({"op": "remove", "path": "/edges/0"}, "was not added by this agent"),
        ({"op": "add", "path": "/limits", "value": {"time": "1h"}}, "an agent may not change limits"),
        ({"op": "add", "path": "/nodes/-", "value": {"id": "x"}}, "x has no work"),
    ],
)
def test_what_an_agent_may_not_change_is_told_back(operation: dict[str, Any], expected: str) -> None:
    world = World(make_app(ALLOW))
    world.fake_model("fast", patching([operation]), "Sorry.")

    start(world).result()

    assert expected in told(world)
    assert len(world.calls("ping")) == 1


def test_nobody_is_asked_about_a_patch_that_changes_nothing() -> None:
    world = World(make_app())
    world.fake_model("fast", patching([{"op": "test", "path": "/name", "value": "flow"}]), "Sorry.")

    start(world).result()

    assert "The patch changes nothing" in told(world)


def test_an_agent_may_change_what_it_added() -> None:
    world = World(make_app(ALLOW, {"allow": "patch", "names": ["/nodes/mail/*"]}))
    change = [{"op": "replace", "path": "/nodes/mail/with/word", "value": "letter"}]
    world.fake_model("fast", patching(), patching(change), "Done.")

    start(world).result()

    assert sorted(call.args["word"] for call in world.calls("ping")) == ["done", "letter"]


def test_a_denied_operation_is_not_asked_for() -> None:
    world = World(make_app(ALLOW, {"deny": "patch", "names": ["/edges/-"]}))
    world.fake_model("fast", patching(), "Sorry.")

    start(world).result()

    assert "not permitted" in told(world)


def test_too_many_operations_do_not_fit() -> None:
    world = World(make_app(ALLOW))
    world.fake_model("fast", patching(ADD * 11), "Sorry.")

    start(world).result()

    assert "do not fit the schema" in told(world)


def test_an_agent_that_is_no_node_needs_a_tag() -> None:
    world = World(make_app(ALLOW))
    world.fake_model("fast", patching(), "Sorry.")

    world.run(world.app.registered.newest("planner"), {"prompt": "hi"})  # type: ignore[arg-type]

    assert "This agent is no node of a graph" in told(world)


def test_another_tag_gets_a_new_version() -> None:
    world = World(make_app(ALLOW))
    world.fake_model("fast", patching(workflow_tag="flow:next"), "Done.")

    world.run(world.app.registered.newest("planner"), {"prompt": "hi"})  # type: ignore[arg-type]

    assert '"applied":true' in told(world)
    assert world.perform(lambda: world._service.tags.standing("flow", "next"))[1]


swept = make_app(ALLOW)


def scenario(world: World) -> None:
    world.fake_model("fast", patching(), "Done.")
    start(world).result()
    assert {call.args["word"] for call in world.calls("ping")} == {"done", "mail"}


@pytest.mark.proof
def test_a_patch_is_applied_once_whatever_crashes() -> None:
    assert crash_everywhere(swept, scenario) > 10
