"""Bad models and bad tools beside a good agent, on one host: each ends as it must, and disturbs no other run."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import weft
from tests.agents.scripted_server import Answer, Say, Sent, delta, http, scripted, stream, text, tool_calls

MEGABYTE = b"data: " + b"x" * (1024 * 1024 - 8) + b"\n\n"
GOOD_TURNS = 12
SAME = tool_calls(("c", "look", '{"n":1}'))
HUNDRED = tool_calls(*[(f"c{n}", "look", f'{{"n":{n}}}') for n in range(100)])


def once(first: Say) -> list[Answer]:
    return [first, text("ok")]


BAD: dict[str, tuple[list[Answer], str]] = {
    "garbage": ([http(200, b"\xff\xfe<html>")], "model.unavailable"),
    "nothing": ([text("")], "agent.bad_output"),
    "flood": ([Say((http(200, content_type="text/event-stream").pieces[0], *[MEGABYTE] * 40))], "model.unavailable"),
    "forever": ([stream(delta(content="and "), done=False, hangs=True)], "model.unavailable"),
    "unknown": ([tool_calls(("c", "launch_rocket", "{}"))], "agent.bad_output"),
    "wrong": ([tool_calls(("c", "look", '{"n":"one"}'))], "agent.bad_output"),
    "repeats": ([SAME], "agent.stuck"),
    "hundred": (once(HUNDRED), "ok"),
    "raises": (once(tool_calls(("c", "raises", "{}"))), "ok"),
    "hangs": (once(tool_calls(("c", "hangs", "{}"))), "ok"),
    "huge": (once(tool_calls(("c", "huge", "{}"))), "ok"),
}
"""What the model of each agent says, and how its run ends: with a code, or with an answer."""


def make_app(url: str, folder: Path) -> weft.App:
    app = weft.App(f"sqlite:///{folder}/weft.db")

    @app.step(effect="pure")
    async def look(n: int) -> str:
        return f"found {n}"

    @app.step(retries=0)
    async def raises() -> str:
        raise ValueError("no such customer")

    @app.step(retries=0, timeout="1s")
    async def hangs() -> str:
        await asyncio.sleep(10**9)
        return ""

    @app.step(effect="pure")
    async def huge() -> str:
        return "x" * 100_000_000

    tools = [look, raises, hangs, huge]
    for name in (*BAD, "good"):
        timeout = "1s" if name == "forever" else "2m"
        app.model(name, url=url, retries=weft.Retry(1), timeout=timeout)
        app.agent(f"agent_{name}", model=name, tools=tools, repairs=1, repeats=2)
    return app


def answers() -> tuple[Answer, dict[str, int]]:
    """Return one model for all agents, and how often each was asked."""
    asked: dict[str, int] = {}

    def answer(sent: Sent) -> Say:
        name = str(sent.body["model"])
        count = asked[name] = asked.get(name, 0) + 1
        if name == "good":
            return tool_calls(("c", "look", f'{{"n":{count}}}')) if count % (GOOD_TURNS + 1) else text("Done.")
        said = BAD[name][0][min(count, len(BAD[name][0])) - 1]
        assert isinstance(said, Say)
        return said

    return answer, asked


async def ended(run: Any) -> str:
    """Return the answer of a run, or the code of its failure."""
    try:
        return str((await run.result(timeout="5m")).output)
    except weft.RunFailed as failed:
        return failed.failure.code


def test_what_is_bad_ends_as_it_must_and_disturbs_no_other_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        answer, asked = answers()
        async with scripted(answer) as provider, contextlib.AsyncExitStack() as stack:
            app = await stack.enter_async_context(make_app(provider.url, tmp_path))
            good = [await app.start("agent_good", {"prompt": "go"}, id="good-1")]
            bad = {name: await app.start(f"agent_{name}", {"prompt": "go"}, id=name) for name in BAD}
            found = dict(zip(bad, await asyncio.gather(*map(ended, bad.values())), strict=True))
            assert found == {name: end for name, (_, end) in BAD.items()}
            assert await ended(good[0]) == "Done."
            assert asked["good"] == GOOD_TURNS + 1, "nothing of it was asked twice"
            after = await app.start("agent_good", {"prompt": "go"}, id="good-2")
            assert await ended(after) == "Done."
            spent = {unit.unit: unit.spent for unit in (await bad["hundred"].usage()).units}
            assert spent["tools"] == 32, "of a hundred calls"

    asyncio.run(scenario())
