"""Agents that call each other: at most 8 are above each other, whatever runs between them."""

from __future__ import annotations

import json
from typing import Any

import weft
from weft.core.run.children import AGENTS_MAX
from weft.ports.run_query import RunQuery
from weft.testing import SimRun, World, calls


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
    down = [calls(delegate={})] * AGENTS_MAX
    world.fake_model("fast", *down, *["Somebody failed."] * AGENTS_MAX)

    assert world.run(agent("go")).output == "Somebody failed."

    asked = world.model_calls("fast")
    assert len(asked) == 2 * AGENTS_MAX, "each agent was asked, and all were told how their call ended"
    told: list[Any] = [json.loads(call.messages[-1].text) for call in asked[AGENTS_MAX:]]
    assert "8 agents above it" in json.dumps(told[0]), "the one that could not call another one"
    assert told[1:] == ["Somebody failed."] * (AGENTS_MAX - 1)


def test_as_many_as_the_limit_may_call_each_other() -> None:
    app, agent = endless()
    world = World(app)
    down = [calls(delegate={})] * (AGENTS_MAX - 1)
    world.fake_model("fast", *down, *["Done."] * AGENTS_MAX)

    run = world.start(agent("go"))

    assert run.result().output == "Done."


def runs_of(world: World, app: weft.App) -> list[str]:
    """Return the workflows of all runs that were ever started."""

    async def read() -> list[str]:
        return sorted(row.workflow for row in (await app.service.search(RunQuery(internal=True))).rows)

    return world.perform(read)


def test_for_the_ninth_agent_no_run_is_started() -> None:
    app, agent = endless()
    world = World(app)
    world.fake_model("fast", *[calls(delegate={})] * AGENTS_MAX, *["Somebody failed."] * AGENTS_MAX)

    world.run(agent("go"))

    assert runs_of(world, app) == ["delegate"] * AGENTS_MAX + ["endless"] * AGENTS_MAX


def chain(app: weft.App, **last: Any) -> weft.Agent[str]:
    """Return the first of nine agents, each of which is a tool of the one before it. ``last``: rules of the last."""
    app.model("fast", url="http://127.0.0.1:9/v1")
    below = app.agent("agent_0", model="fast")
    for number in range(1, AGENTS_MAX + 1):
        rules = last if number == 1 else {}
        below = app.agent(f"agent_{number}", model="fast", tools=[weft.tool(below, **{"approve": "never", **rules})])
    return below


def down(count: int = AGENTS_MAX) -> list[Any]:
    """Return the answers with which each of some agents calls the next one."""
    wanted: list[dict[str, Any]] = [{f"agent_{number}": {"prompt": "go"}} for number in reversed(range(count))]
    return [calls(**one) for one in wanted]


def begin(world: World, first: weft.Agent[str]) -> SimRun[Any]:
    world.fake_model("fast", *down(), "I did it myself.", *["Done."] * (AGENTS_MAX - 1))
    return world.start(first("go"))


def test_an_agent_that_is_a_tool_itself_is_refused_and_the_model_is_told() -> None:
    app = weft.App()
    world = World(app)

    assert begin(world, chain(app)).result().output == "Done."

    told = json.loads(world.model_calls("fast")[AGENTS_MAX].messages[-1].text)
    assert (told["error"]["type"], told["error"]["code"]) == ("LimitExceeded", "limit.agent_depth")
    assert "agent_0" not in runs_of(world, app)


def test_nobody_is_asked_about_an_agent_that_cannot_be_called() -> None:
    app = weft.App()
    world = World(app)
    began = world.now_ms

    begin(world, chain(app, approve="always")).result()

    assert "limit.agent_depth" in world.model_calls("fast")[AGENTS_MAX].messages[-1].text
    assert world.now_ms - began < 60_000, "no approval is waited for"


def test_an_agent_that_cannot_be_called_uses_no_budget() -> None:
    app = weft.App()
    world = World(app)

    run = begin(world, chain(app))

    run.result()
    used = world.perform(lambda: app.get(run.id).usage())
    assert {line.unit: line.spent for line in used.units}["tools"] == AGENTS_MAX - 1


def test_an_agent_for_which_failures_are_no_answers_fails_at_the_limit() -> None:
    app = weft.App()
    world = World(app)
    first = chain(app, on_error="fail")
    world.fake_model("fast", *down(), *["It failed."] * (AGENTS_MAX - 1))

    assert world.run(first("go")).output == "It failed."

    asked = world.model_calls("fast")
    assert len(asked) == 2 * AGENTS_MAX - 1, "the eighth is not asked again"
    assert "8 agents above it" in asked[AGENTS_MAX].messages[-1].text


def test_an_agent_of_a_graph_is_refused_too() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")
    app.graph({"name": "ask", "nodes": {"judge": {"agent": {"model": "fast", "system": "You judge."}}}})

    @app.workflow
    async def consult(ctx: weft.Context) -> str:
        """Ask the agent of the graph."""
        return str(await ctx.call("ask", {}))

    first = app.agent("agent_0", model="fast", tools=[weft.tool(consult, approve="never")])
    for number in range(1, AGENTS_MAX):
        first = app.agent(f"agent_{number}", model="fast", tools=[weft.tool(first, approve="never")])
    world = World(app)
    world.fake_model("fast", *down(AGENTS_MAX - 1), calls(consult={}), *["Nobody judged."] * AGENTS_MAX)

    assert world.run(first("go")).output == "Nobody judged."

    assert "8 agents above it" in world.model_calls("fast")[AGENTS_MAX].messages[-1].text
    assert "weft.agent" not in runs_of(world, app)


def test_a_limit_of_the_tree_is_told_to_the_model() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.workflow
    async def dive(left: int) -> tuple[str, int]:
        if left:
            return await dive(left - 1)
        reply = await lead("go")
        return reply.output, reply.usage.tools

    @app.workflow
    async def count(n: int) -> int:
        """Count."""
        return n

    lead = app.agent("lead", model="fast", tools=[weft.tool(count, effect="pure")])
    world = World(app)
    world.fake_model("fast", calls(count={"n": 1}), "I counted myself.")

    assert world.run(dive(30)) == ("I counted myself.", 0)
    assert json.loads(world.model_calls("fast")[1].messages[-1].text)["error"]["code"] == "limit.tree_depth"
