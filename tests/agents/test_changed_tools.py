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
            run = await app.start("clerk", {"prompt": "go"}, id="c-1")
            while "ask" not in [wait.kind for wait in (await run.explain()).waiting]:
                await asyncio.sleep(0.01)
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
