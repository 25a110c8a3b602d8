"""Agents that call each other: at most 8 are above each other, whatever runs between them."""

from __future__ import annotations

import json
from typing import Any

import weft
from weft.authoring.agents.workflow import DEPTH_MAX
from weft.testing import World, calls


def endless() -> tuple[weft.App, weft.Agent[str]]:
    """An agent whose only tool is a workflow that runs the agent again."""
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.workflow
    async def delegate() -> str:
        """Let somebody else do it."""
        reply = await agent("go on")
        return reply.output

    agent = app.agent("endless", model="fast", tools=[weft.tool(delegate, effect="idempotent")])
    return app, agent


def test_the_ninth_agent_is_refused_and_the_eighth_is_told() -> None:
    app, agent = endless()
    world = World(app)
    down = [calls(delegate={})] * DEPTH_MAX
    world.fake_model("fast", *down, *["Somebody failed."] * DEPTH_MAX)

    assert world.run(agent("go")).output == "Somebody failed."

    asked = world.model_calls("fast")
    assert len(asked) == 2 * DEPTH_MAX, "each agent was asked, and all were told how their call ended"
    told: list[Any] = [json.loads(call.messages[-1].text) for call in asked[DEPTH_MAX:]]
    assert "8 agents above it" in json.dumps(told[0]), "the one that could not call another one"
    assert told[1:] == ["Somebody failed."] * (DEPTH_MAX - 1)


def test_as_many_as_the_limit_may_call_each_other() -> None:
    app, agent = endless()
    world = World(app)
    down = [calls(delegate={})] * (DEPTH_MAX - 1)
    world.fake_model("fast", *down, *["Done."] * DEPTH_MAX)

    run = world.start(agent("go"))

    assert run.result().output == "Done."


def test_an_agent_that_is_a_tool_itself_is_refused_too() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")
    last = app.agent("agent_0", model="fast")
    for number in range(1, DEPTH_MAX + 1):
        last = app.agent(f"agent_{number}", model="fast", tools=[last], approve="never")
    world = World(app)
    down = [calls(**{f"agent_{number}": {"prompt": "go"}}) for number in reversed(range(DEPTH_MAX))]
    world.fake_model("fast", *down, "I did it myself.", *["Done."] * (DEPTH_MAX - 1))

    assert world.run(last("go")).output == "Done."

    told = world.model_calls("fast")[DEPTH_MAX].messages[-1].text
    assert "limit.agent_depth" in told
