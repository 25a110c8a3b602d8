"""What a node may do at most (``node_capabilities``), and what one run may do at most (``run_policies``)."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest

import weft
from tests.agents.test_agent_nodes import JUDGE, app_with, choice, taken
from tests.agents.toolbox.test_patching import ALLOW, make_app, patching, start, told
from weft.graphs.load import load_graph
from weft.testing import World, calls, crash_everywhere
from weft.testing.world import SimRun

CHOOSE = {**JUDGE, "choose": {"of": ["big", "small"]}}


def started(world: World, workflow: str = "qualify", **options: Any) -> SimRun[Any]:
    """Start a run as programs do, with all that a start may say."""
    handle = world.perform(lambda: world.app.start(workflow, {"company": "Acme"}, **options))
    return SimRun(world, handle.id, lambda: world.app.get(handle.id))


def refused(document: dict[str, Any]) -> list[str]:
    with pytest.raises(weft.BadGraph) as bad:
        load_graph(document)
    return [found.code for found in bad.value.context["findings"]]


def two_nodes(**capabilities: Any) -> dict[str, Any]:
    first = {"step": "mark", "next": "last", "node_capabilities": capabilities}
    return {"name": "flow", "nodes": {"first": first, "last": {"step": "mark"}, "other": {"step": "mark"}}}


# --- node_capabilities ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "code"),
    [
        ({"can_emit_to": ["other"]}, "graph.cannot_emit_to"),
        ({"can_emit_to": []}, "graph.cannot_emit_to"),
        ({"can_emit_to": ["last", "lost"]}, "graph.unknown_node"),
        ({"max_fanout": 0}, "graph.wrong_type"),
        ({"requires_approval": "yes"}, "graph.wrong_type"),
        ({"allowed_tools": ["search"]}, "graph.wrong_type"),
        ({"can_fly": True}, "graph.unknown_field"),
    ],
)
def test_capabilities_that_contradict_the_document_are_refused(capabilities: dict[str, Any], code: str) -> None:
    assert code in refused(two_nodes(**capabilities))


def test_capabilities_that_fit_the_document_are_accepted() -> None:
    loaded = load_graph(two_nodes(can_emit_to=["last"], max_fanout=3))
    assert loaded.graph.nodes["first"].limits.fan_out == 3


def test_an_agent_cannot_add_an_edge_that_the_capabilities_of_a_node_do_not_allow() -> None:
    app = make_app(ALLOW)
    nodes = [
        {"id": "plan", "agent": "planner", "node_capabilities": {"can_emit_to": ["done"]}},
        {"id": "done", "step": "ping", "with": {"word": "done"}},
    ]
    app.graph({"name": "flow", "nodes": nodes, "edges": [{"from": "plan", "to": "done"}]})
    world = World(app)
    world.fake_model("fast", patching(), "I could not.")

    start(world).result()

    assert "cannot_emit_to" in told(world)
    assert [call.args["word"] for call in world.calls("ping")] == ["done"]


def test_an_agent_chooses_at_most_as_many_nodes_as_its_node_may_fire() -> None:
    world = World(app_with({**CHOOSE, "node_capabilities": {"max_fanout": 1}}))
    world.fake_model("fast", choice("big", "small"), choice("small"))

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["small"]


def test_a_node_that_fires_more_tokens_than_it_may_ends_the_run() -> None:
    app = weft.App()
    first = {
        "pass": True,
        "next": {"to": "each", "for_each": "${input.teams}"},
        "node_capabilities": {"max_fanout": 2},
    }
    app.graph({"name": "flow", "input": {"teams": "array"}, "nodes": {"first": first, "each": {"pass": True}}})
    world = World(app)

    assert world.run("flow", {"teams": ["a", "b"]}) == {}
    with pytest.raises(weft.RunFailed, match="limit of 2 fan_out"):
        world.run("flow", {"teams": ["a", "b", "c"]})


@pytest.mark.parametrize("agent", ["described", "named"])
def test_an_agent_has_only_the_tools_that_its_node_allows(agent: str) -> None:
    parts: Any = {"model": "fast", "tools": ["search", "mark"]} if agent == "described" else "finder"
    node = {"agent": parts, "node_capabilities": {"allowed_tools": ["sea*"]}, "save": {"state.score": "${output.text}"}}
    app = app_with(node)
    app.agent("finder", model="fast", tools=["search", "mark"])
    world = World(app)
    world.fake_model("fast", calls(mark={"team": "x"}), "Not possible.")

    assert world.run("qualify", {"company": "Acme"}) == {"score": "Not possible."}
    first, second = world.model_calls("fast")
    assert {tool.name for tool in first.tools} - {"read_result"} == {"search"}
    assert "There is no tool" in second.messages[-1].text
    assert taken(world) == []


def approving(**node: Any) -> weft.App:
    app = weft.App()

    @app.step(effect="irreversible")
    async def pay(cents: int) -> int:
        return cents

    guarded = {"step": "pay", "with": {"cents": "${input.cents}"}, "node_capabilities": {"requires_approval": True}}
    app.graph(
        {
            "name": "flow",
            "input": {"cents": "integer"},
            "nodes": {"first": {"pass": True, "next": "pay"}, "pay": {**guarded, **node}, "no": {"pass": True}},
            "start": "first",
        }
    )
    return app


def test_a_node_that_requires_approval_works_after_people_agreed() -> None:
    world = World(approving(next="no"))
    run = world.start(world.app.registered.newest("flow"), {"cents": 5})  # type: ignore[arg-type]

    asked = next(event for event in run.events if event.kind == "ask_opened").data
    assert asked["title"] == "flow wants to run pay"
    assert asked["about"] == {"node": "pay", "input": {"cents": 5}}
    assert world.calls("pay") == []

    world.restart()
    run.answer("pay", by="ann")
    run.result()
    assert [call.args for call in world.calls("pay")] == [{"cents": 5}]


def test_a_node_that_people_reject_fails_and_is_caught() -> None:
    world = World(approving(catch=[{"error": "step.rejected", "to": "no"}]))
    run = world.start(world.app.registered.newest("flow"), {"cents": 5})  # type: ignore[arg-type]
    run.answer("pay", approved=False, reason="too much", by="ann")

    run.result()
    assert world.calls("pay") == []


def test_a_rejected_node_asks_again_when_the_run_is_retried() -> None:
    world = World(approving(next="no"))
    run = world.start(world.app.registered.newest("flow"), {"cents": 5})  # type: ignore[arg-type]
    run.answer("pay", approved=False, reason="too much", by="ann")
    with pytest.raises(weft.RunFailed, match="rejected by ann: too much"):
        run.result()

    world.perform(lambda: world.app.get(run.id).retry())
    run.answer("pay", by="ann")
    run.result()
    assert len(world.calls("pay")) == 1


def test_an_approved_node_works_once_whatever_crashes() -> None:
    def scenario(world: World) -> None:
        run = world.start(world.app.registered.newest("flow"), {"cents": 5})  # type: ignore[arg-type]
        run.answer("pay", by="ann")
        with contextlib.suppress(weft.RunFailed):  # it died with the payment in its hands: nobody repeats it
            run.result()
        assert len(world.calls("pay")) <= 1

    assert crash_everywhere(approving(next="no"), scenario) > 3


# --- run_policies --------------------------------------------------------------------------------------------------


def test_an_agent_chooses_only_among_the_transitions_of_its_run() -> None:
    world = World(app_with(CHOOSE))
    world.fake_model("fast", choice("big"), choice("small"))

    run = started(world, run_policies={"allowed_transitions": {"judge": ["small"]}})

    run.result()
    assert taken(world) == ["small"]
    assert "big" not in str(world.model_calls("fast")[0].output_schema)


def test_an_agent_whose_run_allows_none_of_its_choices_fails() -> None:
    world = World(app_with(CHOOSE))
    run = started(world, run_policies={"allowed_transitions": {"judge": []}})
    with pytest.raises(weft.RunFailed) as failed:
        run.result()
    assert failed.value.failure.code == "policy.denied"
    assert world.model_calls("fast") == []


@pytest.mark.parametrize("work", [{"step": "mark", "with": {"team": "x"}}, {"pass": True}])
def test_a_transition_that_the_run_does_not_allow_fails_its_node(work: dict[str, Any]) -> None:
    world = World(app_with({**work, "next": "big", "catch": "refused"}))
    rules = {"allowed_transitions": {"judge": ["refused"]}}

    started(world, run_policies=rules).result()

    assert taken(world)[-1] == "refused"
    assert "big" not in taken(world)


def test_a_handler_of_errors_is_no_way_around_the_transitions() -> None:
    world = World(app_with({"pass": True, "next": "big", "catch": "refused"}))
    run = started(world, run_policies={"allowed_transitions": {"judge": []}})
    with pytest.raises(weft.RunFailed) as failed:
        run.result()
    assert failed.value.failure.code == "policy.denied"
    assert taken(world) == []


def test_a_run_has_at_most_the_hops_of_its_start() -> None:
    world = World(app_with({"pass": True, "next": "big"}))
    assert started(world, run_policies={"max_hops": 3}).result() == {"score": None}
    with pytest.raises(weft.RunFailed, match="limit of 1 hops"):
        started(world, run_policies={"max_hops": 1}).result()


def test_a_run_is_over_at_its_deadline_whatever_its_style() -> None:
    app = weft.App()

    @app.workflow(timeout="1h")
    async def wait(ctx: weft.Context, company: str) -> None:
        await ctx.sleep("30m")

    world = World(app)
    began = world.now_ms
    due = datetime.fromtimestamp(began / 1000 + 60, UTC).isoformat()
    run = started(world, "wait", run_policies={"deadline_at": due})
    with pytest.raises(weft.WeftError):
        run.result()
    assert world.now_ms - began < 120_000


@pytest.mark.parametrize(
    "rules",
    [
        {"max_hopes": 1},
        {"max_hops": 0},
        {"max_hops": True},
        {"max_hops": "3"},
        {"deadline_at": "tomorrow"},
        {"deadline_at": "2026-01-01T00:00:00"},
        {"deadline_at": 7},
        {"allowed_transitions": ["judge"]},
        {"allowed_transitions": {"judge": "big"}},
        {"allowed_transitions": {"judge": ["bug"]}},
        {"allowed_transitions": {"jugde": []}},
    ],
)
def test_rules_that_are_not_valid_start_nothing(rules: dict[str, Any]) -> None:
    world = World(app_with({"pass": True, "next": "big"}))
    with pytest.raises(weft.BadValue) as bad:
        started(world, id="q-1", run_policies=rules)
    assert bad.value.code == "value.bad_policy"
    with pytest.raises(weft.NotFound):
        world.perform(lambda: world.app.get("q-1").status())


def test_rules_for_graphs_are_refused_for_code() -> None:
    app = weft.App()

    @app.workflow
    async def hello(company: str) -> str:
        return company

    with pytest.raises(weft.BadValue, match="no graph"):
        started(World(app), "hello", run_policies={"max_hops": 3})


@pytest.mark.parametrize("agent", ["described", "registered"])
def test_an_agent_finds_no_tool_that_its_node_does_not_allow(agent: str) -> None:
    tools = ["search_tools", "delegate_to_agent"]
    parts: Any = {"model": "fast", "tools": tools} if agent == "described" else "finder"
    allowed = {"allowed_tools": ["search_tools", "call_tool", "delegate_to_agent"]}
    app = app_with({"agent": parts, "node_capabilities": allowed, "save": {"state.score": "${output.text}"}})
    app.agent("finder", model="fast", tools=tools)
    world = World(app)
    python = calls(delegate_to_agent={"agent_type": "code_interpreter", "inputs": {"code": "1"}})
    world.fake_model("fast", calls(call_tool={"name": "sort_and_cut"}), python, "Not possible.")

    assert world.run("qualify", {"company": "Acme"}) == {"score": "Not possible."}
    _, second, third = world.model_calls("fast")
    assert "not permitted" in second.messages[-1].text
    assert "not permitted" in third.messages[-1].text
