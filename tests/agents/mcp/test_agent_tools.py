"""Agents that call tools of real MCP servers, with a scripted model, on a real host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.agents.scripted_server import Say, ScriptedServer, scripted, text, tool_calls
from tests.mcp.toolbox import serving_http


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an MCP server."""
    with serving_http(tmp_path_factory.mktemp("box")) as url:
        yield url


def called(tool: str, arguments: str = "{}") -> Say:
    return tool_calls(("c1", f"box__{tool}", arguments))


async def asked(server: ScriptedServer, box: str, **options: Any) -> tuple[weft.App, Any]:
    """An app with an agent that may call the tools of a server."""
    app = weft.App("memory://")
    app.model("fast", url=server.url)
    tools = weft.mcp("box", url=box, **({"effects": {"*": "idempotent"}} | options))
    return app, app.agent("clerk", model="fast", tools=[tools], approvers=["ann"])


async def open_question(run: Any) -> Any:
    """Wait until a run asks something."""
    while True:
        for waiting in (await run.explain()).waiting:
            if waiting.action is not None and waiting.action.kind == "answer":
                return waiting
        assert (await run.status()) == "running", await run.explain()
        await asyncio.sleep(0.02)


def told(server: ScriptedServer) -> str:
    """What the model was told as the result of its last call."""
    return str(server.requests[-1].body["messages"][-1]["content"])


def test_a_model_calls_a_tool_and_is_told_its_result(box: str) -> None:
    async def work() -> None:
        async with scripted(called("add", '{"a": 1, "b": 2}'), text("It is 3.")) as model:
            app, clerk = await asked(model, box)
            async with app:
                reply = await (await app.start(clerk("How much is 1 + 2?"))).result()
            assert reply.output == "It is 3."
            assert '"sum":3' in told(model).replace(" ", "")
            names = {tool["function"]["name"] for tool in model.requests[0].body["tools"]}
            assert {"box__add", "box__draw"} <= names

    asyncio.run(work())


def test_an_error_of_a_tool_is_told_to_the_model(box: str) -> None:
    async def work() -> None:
        async with scripted(called("fail"), text("Sorry.")) as model:
            app, clerk = await asked(model, box)
            async with app:
                await (await app.start(clerk("Go"))).result()
            assert "no such city" in told(model)

    asyncio.run(work())


def test_a_question_of_a_server_is_asked_to_people_and_its_answer_goes_back(box: str) -> None:
    async def work() -> None:
        async with scripted(called("ask"), text("Done.")) as model:
            app, clerk = await asked(model, box)
            async with app:
                run = await app.start(clerk("Go"))
                question = await open_question(run)
                assert "The MCP server box asks" in question.what
                await run.decide(question.location, approved=True, by="ann", form={"city": "Oslo"})
                await run.result()
            assert "accept Oslo state-1" in told(model)

    asyncio.run(work())


def test_an_irreversible_call_in_which_the_server_dies_is_not_repeated(tmp_path: Path) -> None:
    async def work() -> None:
        with serving_http(tmp_path) as url:
            async with scripted(called("die"), text("Done.")) as model:
                app, clerk = await asked(model, url, effects={})
                async with app:
                    run = await app.start(clerk("Go"))
                    question = await open_question(run)
                    await run.decide(question.location, approved=True, by="ann")
                    with pytest.raises(weft.RunFailed) as failed:
                        await run.result()
        assert failed.value.failure.code == "step.outcome_unknown"
        assert (tmp_path / "calls").read_text().count("die") == 1

    asyncio.run(work())


def test_two_servers_with_one_name_are_refused() -> None:
    app = weft.App("memory://")
    app.model("fast", url="http://127.0.0.1:9/v1")
    app.agent("one", model="fast", tools=[weft.mcp("box", command="a")])

    with pytest.raises(weft.NameTaken, match='Two MCP servers are called "box"'):
        app.agent("two", model="fast", tools=[weft.mcp("box", command="b")])
