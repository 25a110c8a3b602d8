"""A run keeps the tools that it began with; the program that performs them may have others by then."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import weft
from tests.agents.scripted_server import ScriptedServer, scripted, text, tool_calls
from tests.steps.http_kit import go

OLD = '{"order_id":"o-1"}'
NEW = '{"order_id":"o-1","region":"eu"}'
STOLEN = '{"order_id":"o-1","region":"eu","key":{"$secret":"env:HOME"}}'
ASK = tool_calls(("c0", "ask_person", '{"question":"Which?"}'))


def release(url: str, folder: Path, seen: list[Any], *, is_new: bool) -> weft.App:
    """The program, before or after its step has got another parameter."""
    app = weft.App(f"sqlite:///{folder}/weft.db")
    app.model("fast", url=url)

    async def old(order_id: str) -> str:
        seen.append([order_id])
        return "found"

    async def new(order_id: str, region: str, key: weft.Secret | None = None) -> str:
        seen.append([order_id, region])
        return "found"

    body: Any = new if is_new else old
    look = app.step(name="look", effect="pure")(body)
    app.agent("clerk", model="fast", tools=[look, weft.person(of=["ann"])])
    return app


async def play(folder: Path, *calls: str) -> tuple[ScriptedServer, list[Any]]:
    """Let an agent ask a person, change the program, and let the agent make these calls."""
    seen: list[Any] = []
    wanted = [tool_calls((f"c{number}", "look", given)) for number, given in enumerate(calls, 1)]
    async with scripted(ASK, *wanted, text("Done.")) as server:
        app = release(server.url, folder, seen, is_new=False)
        async with app:
            await until_asked(await app.start("clerk", {"prompt": "go"}, id="c-1"))
        app = release(server.url, folder, seen, is_new=True)
        async with app:
            run = app.get("c-1")
            await run.decide("turn/~0/tools/0/ask_person", approved=True, by="ann", form={"answer": "This."})
            assert (await run.result(timeout="60s"))["output"] == "Done."
    return server, seen


def test_calls_that_fit_the_tool_as_it_is_now_are_performed_and_others_told_back(tmp_path: Path) -> None:
    server, seen = go(play(tmp_path, OLD, STOLEN, NEW))

    assert seen == [["o-1", "eu"]]
    told = [json.loads(request.body["messages"][-1]["content"]) for request in server.requests[2:]]
    assert "region" in told[0]["error"]
    assert "key" in json.dumps(told[1]["error"])
    assert told[2] == "found"
    shown = [tool for tool in server.requests[-1].body["tools"] if tool["function"]["name"] == "look"]
    assert list(shown[0]["function"]["parameters"]["properties"]) == ["order_id"], "prefix caches hold"


def release_with(url: str, folder: Path, model: str = "fast", tool: str = "look") -> weft.App:
    """The program with a model and a tool of these names."""
    app = weft.App(f"sqlite:///{folder}/weft.db")
    app.model(model, url=url)

    @app.step(name=tool, effect="irreversible")
    async def look(order_id: str) -> str:
        return "found"

    app.agent("clerk", model=model, tools=[look, weft.person(of=["ann"])])
    return app


async def until_asked(run: weft.Handle[Any]) -> None:
    while "ask" not in [wait.kind for wait in (await run.explain()).waiting]:
        await asyncio.sleep(0.01)


async def until(run: weft.Handle[Any], status: str) -> None:
    while await run.status() != status:
        await asyncio.sleep(0.01)


def test_a_run_whose_model_is_gone_is_held_and_goes_on_with_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with scripted(ASK, text("Done.")) as server:
            async with release_with(server.url, tmp_path) as app:
                await until_asked(await app.start("clerk", {"prompt": "go"}, id="c-1"))
            async with release_with(server.url, tmp_path, model="quick") as app:
                run = app.get("c-1")
                await run.decide("turn/~0/tools/0/ask_person", approved=True, by="ann", form={"answer": "This."})
                await until(run, "held")
                held = [event.data["message"] async for event in run.events() if event.kind == "run_held"]
                assert len(held) == 1
                assert 'began with the model "fast"' in held[0]
                assert "weft resume c-1" in held[0]
            async with release_with(server.url, tmp_path) as app:
                run = app.get("c-1")
                await run.resume()
                assert (await run.result(timeout="60s"))["output"] == "Done."
            assert len(server.requests) == 2, "nothing recorded is asked for again"

    go(scene())


def test_a_tool_that_is_gone_when_its_call_is_approved_is_told_back(tmp_path: Path) -> None:
    async def scene() -> str:
        async with scripted(tool_calls(("c1", "look", OLD)), text("Done.")) as server:
            async with release_with(server.url, tmp_path) as app:
                await until_asked(await app.start("clerk", {"prompt": "go"}, id="c-1"))
            async with release_with(server.url, tmp_path, tool="search") as app:
                run = app.get("c-1")
                await run.decide("turn/~0/tools/0/approve", approved=True, by="ann")
                assert (await run.result(timeout="60s"))["output"] == "Done."
            return str(server.requests[1].body["messages"][-1]["content"])

    told = json.loads(go(scene()))
    assert told["error"] == {"type": "BadValue", "message": "look is no longer there.", "code": "tool.unknown"}
