"""Agents as nodes of graphs: named and described in the document, and the nodes that they choose."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.run.questions import STARTED_BY, STARTED_ROLES
from weft.graphs.check import check_loaded
from weft.graphs.load import load_graph
from weft.runtime.orders import StartOrder
from weft.testing import World, calls
from weft.testing.world import SimRun

JUDGE: dict[str, Any] = {
    "agent": {
        "model": "fast",
        "system": "You judge.",
        "prompt": "Judge ${input.company}.",
        "output": {"score": "number"},
    },
    "save": {"state.score": "${output.score}"},
}


def app_with(node: dict[str, Any], policy: dict[str, Any] | None = None, **more: Any) -> weft.App:
    app = weft.App(policy=policy)
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def mark(team: str) -> str:
        return team

    @app.step(effect="pure")
    async def search(query: str) -> str:
        """Search."""
        return f"found {query}"

    nodes = {name: {"step": "mark", "with": {"team": name}} for name in ("big", "small", "nobody", "refused")}
    targets = {name: each for name, each in nodes.items() if name in str(node)}
    app.graph(
        {
            "name": "qualify",
            "input": {"company": "string"},
            "state": {"score": "any"},
            "nodes": {"judge": node, **targets},
            "output": {"score": "${state.score}"},
            **more,
        }
    )
    return app


def taken(world: World) -> list[str]:
    return [call.args["team"] for call in world.calls("mark")]


def choice(*names: str, score: float = 7) -> dict[str, Any]:
    return {"score": score, "next_nodes": list(names), "reasoning": "because"}


def test_an_agent_that_a_document_describes_is_asked_and_its_output_is_the_nodes() -> None:
    world = World(app_with(JUDGE))
    world.fake_model("fast", {"score": 0.5})

    assert world.run("qualify", {"company": "Acme"}) == {"score": 0.5}

    (call,) = world.model_calls("fast")
    assert [(message.role, message.text) for message in call.messages] == [
        ("system", "You judge."),
        ("user", "Judge Acme."),
    ]


def test_an_agent_without_a_prompt_is_asked_what_arrived_and_its_text_is_in_a_field() -> None:
    node = {"agent": {"model": "fast"}, "save": {"state.score": "${output.text}"}}
    world = World(app_with(node))
    world.fake_model("fast", "Hello.")

    assert world.run("qualify", {"company": "Acme"}) == {"score": "Hello."}
    assert world.model_calls("fast")[0].messages[-1].text == '{"company":"Acme"}'


def test_tools_are_named_in_the_document() -> None:
    agent = {**JUDGE["agent"], "tools": ["search"], "turns": 3, "options": {"seed": 1}}
    world = World(app_with({**JUDGE, "agent": agent}))
    world.fake_model("fast", calls(search={"query": "acme"}), {"score": 1})

    assert world.run("qualify", {"company": "Acme"}) == {"score": 1}
    assert world.model_calls("fast")[1].messages[-1].text == '"found acme"'
    assert world.model_calls("fast")[0].options["seed"] == 1


def test_a_registered_agent_is_named_and_gets_its_parameters() -> None:
    app = app_with({"agent": "greeter", "with": {"who": "${input.company}"}, "save": {"state.score": "${output.text}"}})
    app.agent("greeter", model="fast", prompt="Greet ${who}.")
    world = World(app)
    world.fake_model("fast", "Hi!")

    assert world.run("qualify", {"company": "Acme"}) == {"score": "Hi!"}
    assert world.model_calls("fast")[0].messages[-1].text == "Greet Acme."


def test_a_registered_agent_without_parameters_gets_the_prompt() -> None:
    app = app_with(
        {"agent": "echo", "with": {"prompt": "Say ${input.company}"}, "save": {"state.score": "${output.text}"}}
    )
    app.agent("echo", model="fast")
    world = World(app)
    world.fake_model("fast", "Acme")

    assert world.run("qualify", {"company": "Acme"}) == {"score": "Acme"}
    assert world.model_calls("fast")[0].messages[-1].text == "Say Acme"


@pytest.mark.parametrize("chosen", [["big"], ["small"], ["big", "small"]])
def test_the_nodes_that_an_agent_chooses_fire(chosen: list[str]) -> None:
    world = World(app_with({**JUDGE, "choose": {"of": ["big", "small"], "otherwise": "nobody"}}))
    world.fake_model("fast", choice(*chosen))

    assert world.run("qualify", {"company": "Acme"}) == {"score": 7}
    assert sorted(taken(world)) == chosen


@pytest.mark.parametrize(
    "wrong",
    [
        choice(),
        choice("nobody"),
        choice("big", "big"),
        choice("big", "small"),
        {"score": 7, "reasoning": "none"},
        {"score": 7, "next_nodes": "big", "reasoning": "text"},
    ],
)
def test_a_choice_that_is_none_is_repaired(wrong: dict[str, Any]) -> None:
    world = World(app_with({**JUDGE, "choose": {"of": ["big", "small"], "at_most": 1, "otherwise": "nobody"}}))
    world.fake_model("fast", wrong, choice("small"))

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["small"]
    assert "next_nodes" in world.model_calls("fast")[1].messages[-1].text


def test_without_a_valid_choice_the_token_goes_the_default_way() -> None:
    node = {**JUDGE, "save": {"state.score": "${output}"}, "choose": {"of": ["big", "small"], "otherwise": "nobody"}}
    world = World(app_with(node))
    world.fake_model("fast", *[choice("nowhere")] * 3)

    output = world.run("qualify", {"company": "Acme"})["score"]

    assert taken(world) == ["nobody"]
    assert (output["next_nodes"], output["routed"], output["score"]) == (["nobody"], "default", 7)


def test_the_default_way_may_lead_to_nodes_that_could_be_chosen() -> None:
    node = {**JUDGE, "choose": {"of": ["big", "small"], "otherwise": ["big", "nobody"]}}
    world = World(app_with(node))
    world.fake_model("fast", *[choice("nowhere")] * 3)

    world.run("qualify", {"company": "Acme"})

    assert sorted(taken(world)) == ["big", "nobody"]


def test_without_a_default_the_node_fails_and_catch_may_route_it() -> None:
    node = {**JUDGE, "choose": {"of": ["big"]}, "catch": [{"error": "agent.bad_route", "to": "refused"}]}
    world = World(app_with(node))
    world.fake_model("fast", *[choice("small")] * 3)

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["refused"]


def test_without_a_default_and_a_catch_the_run_fails_with_its_code() -> None:
    world = World(app_with({**JUDGE, "choose": {"of": ["big"]}}))
    world.fake_model("fast", *[choice("small")] * 3)

    with pytest.raises(weft.RunFailed) as caught:
        world.run("qualify", {"company": "Acme"})

    assert caught.value.failure.code == "agent.bad_route"


def test_an_answer_whose_choice_is_valid_but_nothing_else_is_a_bad_output() -> None:
    node = {**JUDGE, "choose": {"of": ["big"], "otherwise": "nobody"}}
    world = World(app_with({**node, "catch": [{"error": "agent.bad_output", "to": "refused"}]}))
    world.fake_model("fast", *[{**choice("big"), "score": "high"}] * 3)

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["refused"]


def test_the_older_spelling_is_read_alike() -> None:
    node = {
        "type": "agent",
        "branch": {
            "enabled": True,
            "type": "agent_driven",
            "available_next_nodes": ["big", "small"],
            "default": ["nobody"],
        },
        "agent_config": {"model": "fast", "temperature": 0.3, "available_tools": ["search"], "task": "Decide."},
    }
    world = World(app_with(node))
    world.fake_model("fast", {"next_nodes": ["small"], "reasoning": "why not"})

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["small"]
    call = world.model_calls("fast")[0]
    assert call.options["temperature"] == 0.3
    assert [tool.name for tool in call.tools] == ["read_result", "search"]
    assert call.messages[-1].text == "Decide."


def test_the_policy_takes_nodes_out_of_the_choice() -> None:
    policy = {"weft": "policy/1", "rules": [{"deny": "route", "names": ["big"], "when": "agent == 'qualify.judge'"}]}
    world = World(app_with({**JUDGE, "choose": {"of": ["big", "small"], "otherwise": "nobody"}}, policy))
    world.fake_model("fast", choice("big"), choice("small"))

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["small"]


def test_the_policy_takes_nodes_out_of_the_default_way() -> None:
    policy = {"weft": "policy/1", "rules": [{"deny": "route", "names": ["nobody"]}]}
    node = {**JUDGE, "choose": {"of": ["big"], "otherwise": "nobody"}, "catch": [{"error": "*", "to": "refused"}]}
    world = World(app_with(node, policy))
    world.fake_model("fast", *[choice("no such node")] * 3)

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["refused"]


@pytest.mark.parametrize(("role", "way"), [("trainee", "small"), ("manager", "big")])
def test_a_rule_about_a_choice_may_be_for_those_who_started_the_run(role: str, way: str) -> None:
    policy = {"weft": "policy/1", "rules": [{"deny": "route", "names": ["big"], "to": ["role:trainee"]}]}
    world = World(app_with({**JUDGE, "choose": {"of": ["big", "small"]}}, policy))
    world.fake_model("fast", choice("big"), choice("small"))
    attributes: dict[str, Any] = {STARTED_BY: "bob", STARTED_ROLES: [role]}

    async def start() -> str:
        order = StartOrder(workflow="qualify", input={"company": "Acme"}, attributes=attributes)
        return (await world._service.start(order)).id

    run_id = world.perform(start)
    SimRun(world, run_id, lambda: world.app.get(run_id)).result()

    assert taken(world) == [way]


def test_a_registered_agent_that_chooses_gets_what_its_tools_are_bound_to() -> None:
    app = app_with({"agent": "router", "with": {"company": "${input.company}"}, "choose": {"of": ["big", "small"]}})
    found: list[str] = []

    @app.step(effect="pure")
    async def look(company: str) -> str:
        found.append(company)
        return "large"

    app.agent(
        "router",
        model="fast",
        prompt="Decide about ${company}.",
        tools=[weft.tool(look, bind={"company": "${company}"})],
    )
    world = World(app)
    world.fake_model("fast", calls(look={}), {"next_nodes": ["big"], "reasoning": "it is large"})

    world.run("qualify", {"company": "Acme"})

    assert found == ["Acme"]
    assert taken(world) == ["big"]


def test_a_choice_of_which_the_policy_leaves_nothing_fails() -> None:
    policy = {"weft": "policy/1", "rules": [{"deny": "route", "names": ["*"], "when": "tenant == ''"}]}
    node = {**JUDGE, "choose": {"of": ["big"]}, "catch": [{"error": "policy.denied", "to": "refused"}]}
    world = World(app_with(node, policy))

    world.run("qualify", {"company": "Acme"})

    assert taken(world) == ["refused"]


def test_a_crash_in_the_middle_asks_nothing_twice() -> None:
    world = World(app_with({**JUDGE, "choose": {"of": ["big", "small"], "otherwise": "nobody"}}))
    world.fake_model("fast", choice("big"))
    run = world.start("qualify", {"company": "Acme"})
    world.restart()

    run.result()

    assert taken(world) == ["big"]
    assert len(world.model_calls("fast")) == 1


@pytest.mark.parametrize(
    ("node", "code"),
    [
        ({"agent": "nobody_knows"}, "graph.unknown_agent"),
        ({"agent": {"model": "fats"}}, "model.unknown"),
        ({"agent": {"model": "fast", "tools": ["serach"]}}, "tool.unknown"),
        ({"agent": {"model": "fast", "options": {"model": "big"}}}, "value.bad_policy"),
    ],
)
def test_what_is_not_registered_is_refused_before_a_run_begins(node: dict[str, Any], code: str) -> None:
    world = World(app_with(node))

    with pytest.raises(weft.BadGraph) as caught:
        world.run("qualify", {"company": "Acme"})

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("node", "code", "path"),
    [
        ({"agent": {}}, "missing_field", "nodes.judge.agent"),
        ({"agent": 7}, "wrong_type", "nodes.judge.agent"),
        ({"agent": {"model": "fast", "temperature": 1}}, "unknown_field", "nodes.judge.agent.temperature"),
        ({"agent": {"model": "fast", "turns": 5_000}}, "wrong_type", "nodes.judge.agent.turns"),
        ({"agent": {"model": "fast", "output": {"score": "nmber"}}}, "bad_schema", "nodes.judge.agent.output.score"),
        ({"agent": {"model": "fast"}, "choose": {}}, "no_target", "nodes.judge.choose"),
        ({"agent": {"model": "fast"}, "choose": {"of": ["x"]}}, "unknown_node", "nodes.judge.choose.of[0]"),
        ({"step": "mark", "choose": {"of": ["big"]}}, "no_agent", "nodes.judge.choose"),
        ({"agent": {"model": "fast"}, "choose": {"of": ["big"]}, "next": "big"}, "two_spellings", "nodes.judge.choose"),
        (
            {"type": "agent", "agent_config": {"model": "fast", "temperature": "hot"}},
            "wrong_type",
            "nodes.judge.agent_config.temperature",
        ),
    ],
)
def test_a_document_that_describes_no_agent_is_refused(node: dict[str, Any], code: str, path: str) -> None:
    with pytest.raises(weft.BadGraph) as caught:
        load_graph({"name": "x", "nodes": {"judge": node, "big": {"pass": True}}})

    found: Any = caught.value.context["findings"]
    assert (f"graph.{code}", path) in [(each.code, each.path) for each in found]


@pytest.mark.parametrize(("at_most", "twice"), [(1, False), (2, True)])
def test_check_plays_every_choice(at_most: int, twice: bool) -> None:
    loaded = load_graph(
        {
            "name": "x",
            "nodes": {
                "judge": {"agent": {"model": "fast"}, "choose": {"of": ["a", "b"], "at_most": at_most}},
                "a": {"pass": True, "next": "end"},
                "b": {"pass": True, "next": "end"},
                "end": {"pass": True},
            },
        }
    )

    checked = check_loaded(loaded)

    assert checked.outcome == "sound"
    assert ("graph.entered_twice" in [found.code for found in checked.findings]) is twice
