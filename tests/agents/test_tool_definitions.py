"""Tools as models see them: names, descriptions and parameters."""

from __future__ import annotations

import asyncio
from typing import Any

import weft
from weft.agents.models.chunks import PIECE_CHARS, ChunkWriter
from weft.ports.models import ModelChunk
from weft.testing import World, calls


def test_a_model_sees_what_it_may_give_and_the_first_paragraph() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(name="shop.look up")
    async def look(order: str, customer: str, key: weft.Secret | None = None) -> str:
        """Look an order
        up.

        For programmers.
        """
        return order

    @app.workflow
    async def send(ctx: weft.Context, order: str) -> str:
        return order

    send.__doc__ = "x" * 2_000
    agent = app.agent("clerk", model="fast", tools=[weft.tool(look, bind={"customer": "ann"}), send])
    world = World(app)
    world.fake_model("fast", "Hello.")

    world.run(agent("Hi"))

    tools = {tool.name: tool for tool in world.model_calls("fast")[0].tools}
    assert tools["shop_look_up"].description == "Look an order up."
    assert list(tools["shop_look_up"].parameters["properties"]) == ["order"]
    assert list(tools["send"].parameters["properties"]) == ["order"]
    assert len(tools["send"].description) == 1_024


def test_the_rule_of_a_tool_comes_before_that_of_the_agent() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def look(n: int) -> int:
        return n

    @app.step(effect="pure")
    async def count(n: int) -> int:
        return n

    agent = app.agent("clerk", model="fast", tools=[weft.tool(look, approve="never"), count], approve="args.n > 1")
    world = World(app)
    world.fake_model("fast", calls(("look", {"n": 2}), ("count", {"n": 2}), ("count", {"n": 1})), "Done.")
    run = world.start(agent("go"))

    assert [wait.location for wait in run.waiting_for()] == ["turn/~0/tools/1/approve"]
    run.answer("turn/~0/tools/1/approve", by="ann")
    assert run.result().output == "Done."


def test_the_older_spelling_without_tools_has_the_five_of_weft() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")
    app.graph({"weft": "graph/1", "name": "old", "nodes": {"a": {"type": "agent", "agent_config": {"model": "fast"}}}})
    world = World(app)
    world.fake_model("fast", "Hello.")

    world.run("old", {})

    offered = {tool.name for tool in world.model_calls("fast")[0].tools}
    five = {"execute_pipeline", "patch_workflow", "search_tools", "openapi_action", "delegate_to_agent"}
    assert offered == five | {"call_tool", "read_result"}


def test_a_lost_call_is_shown_as_at_most_and_explain_names_who_spent_most() -> None:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1", output=1_000)
    helper = app.agent("helper", model="fast")

    @app.workflow(budget=weft.Budget(tokens=100_000))
    async def desk(ctx: weft.Context) -> str:
        reply = await helper("Hi")
        await ctx.receive("go")
        return reply.output

    async def silent(_: Any) -> str:
        await asyncio.sleep(3600)
        return "never"

    world = World(app)
    world.fake_model("fast", silent, "Hello.")
    run = world.start(desk(), id="desk-1")
    world.advance("1s")
    world.restart()
    world.advance("1h")

    explanation = world.perform(lambda: app.get(run.id).explain())
    budget = "\n".join(explanation.budget)
    assert "at most" in budget
    assert "of 100,000 tokens left" in budget
    assert "most was spent by desk-1." in budget
    assert "weft budget desk-1 --add" in budget


def test_text_is_written_in_pieces() -> None:
    async def answer() -> list[int]:
        written: list[dict[str, Any]] = []
        chunks = ChunkWriter(written.append)
        for _ in range(PIECE_CHARS // 100 + 1):
            chunks.add(ModelChunk(kind="text", text="x" * 100))
        before = [len(one["text"]) for one in written]
        chunks.flush()
        return before

    assert asyncio.run(answer()) == [1_100]
