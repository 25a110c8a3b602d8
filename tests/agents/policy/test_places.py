"""Rules for the workflow and the node that an agent works for, and for nodes that make requests."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.agents.test_loop import told
from weft.testing import World, calls

NODE = {"model": "fast", "prompt": "hi", "tools": ["look"]}


def make_app(*rules: dict[str, Any]) -> weft.App:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def look(what: str) -> str:
        """Look something up."""
        return "found"

    app.agent("helper", model="fast", tools=[look])
    return app


def look_in_graph(rule: dict[str, Any], agent: Any = NODE) -> str:
    """Return what the agent of the node ``judge`` in the graph ``lead`` is told about its call."""
    app = make_app(rule)
    node = {"agent": agent} if isinstance(agent, dict) else {"agent": agent, "with": {"prompt": "hi"}}
    app.graph({"name": "lead", "nodes": {"judge": node}})
    world = World(app)
    world.fake_model("fast", calls(look={"what": "x"}), "ok")
    world.run("lead")
    return told(world, 1)


@pytest.mark.parametrize("agent", [NODE, "helper"], ids=["described", "registered"])
@pytest.mark.parametrize("action", ["tool", "step"])
@pytest.mark.parametrize("to", [["node:judge"], ["workflow:lead"], ["workflow:lead", "node:jud*"]])
def test_rules_for_a_node_and_its_graph_hold_for_its_agent(action: str, to: list[str], agent: Any) -> None:
    assert "not permitted" in look_in_graph({"deny": action, "names": ["look"], "to": to}, agent)


@pytest.mark.parametrize("to", [["node:other"], ["workflow:other", "node:judge"], ["node:turn"]])
def test_rules_for_other_nodes_do_not(to: list[str]) -> None:
    assert "found" in look_in_graph({"deny": "tool", "names": ["look"], "to": to})


def test_rules_for_a_workflow_hold_for_all_agents_that_work_for_it() -> None:
    app = make_app({"deny": "tool", "names": ["look"], "to": ["workflow:chat"]})
    boss = app.agent("boss", model="fast", tools=[weft.tool("helper", approve="never")])

    @app.workflow
    async def chat(ctx: weft.Context) -> str:
        return (await boss("ask")).output

    world = World(app)
    script = (calls(helper={"prompt": "look"}), calls(look={"what": "x"}), "ok", "ok")
    world.fake_model("fast", *script, *script)
    world.run(chat())
    world.run(boss("ask"))

    assert "not permitted" in told(world, 2)
    assert "found" in told(world, 6)


@pytest.mark.parametrize("shared", [False, True])
def test_a_node_may_be_denied_a_secret(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "open-sesame")
    rules = [{"deny": "secret", "names": ["*"], "to": [f"node:{name}"]} for name in ("fetch", "judge")]
    app = weft.App(policy={"weft": "policy/1", "rules": rules})
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(queue="elsewhere" if shared else "default", effect="pure")
    async def key() -> str:
        """Use the key."""
        return f"a key of {len(weft.Secret('env:SHOP_KEY').reveal())} characters"

    caught = {"catch": [{"error": "policy.denied", "to": "after"}]}
    app.graph({
        "name": "lead",
        "nodes": {
            "before": {"step": "key", "next": "fetch"},
            "fetch": {"step": "key", **caught},
            "after": {"step": "key", "next": "judge"},
            "judge": {"agent": {"model": "fast", "prompt": "hi", "tools": ["key"]}},
        },
    })  # fmt: skip
    world = World(app)
    world.fake_model("fast", calls(key={}), "ok")
    world.run("lead")

    assert "policy.denied" in told(world, 1)
