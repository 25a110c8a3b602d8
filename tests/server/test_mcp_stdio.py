"""``weft mcp``: the MCP server as a child process of a client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from tests import scale
from tests.mcp.clients import answering, ask, said

OFFICE = Path(__file__).parent.parent / "mcp" / "office.py"
DROPPED = {"run_id": "dropped"}
WEFT = str(Path(sys.executable).with_name("weft"))


def client(tmp_path: Path, *arguments: str, **options: Any) -> Client:
    """A client that starts ``weft mcp``."""
    command = ["mcp", str(OFFICE), "--url", f"sqlite:///{tmp_path}/weft.db", *arguments]
    root = str(OFFICE.parents[2])
    parameters = StdioServerParameters(command=WEFT, args=command, env={"PYTHONPATH": root}, cwd=tmp_path)
    return Client(parameters, cache=None, **options)


@pytest.mark.parametrize("mode", scale.first(1, ["auto", "legacy"]))
def test_a_client_starts_lists_calls_and_answers(tmp_path: Path, mode: Any) -> None:
    forms: list[Any] = []

    async def work() -> None:
        callback = answering(forms, {"approved": True})
        async with client(tmp_path, mode=mode, elicitation_callback=callback) as session:
            tools = {tool.name for tool in (await session.list_tools()).tools}
            assert {"greet", "refund", "run_cancel"} <= tools
            assert not {"decide", "questions", "secret_plan"} & tools
            assert said(await session.call_tool("greet", {"name": "ann"}))["result"] == "hello ann!"
            assert said(await session.call_tool("talk", {}))["result"] == 1
            paid = said(await session.call_tool("refund", {"cents": 5}))
            assert paid["result"].startswith("paid by ")

    ask(work())
    assert len(forms) == 1


def test_a_client_hears_of_progress_and_cancels(tmp_path: Path) -> None:
    heard: list[str | None] = []

    async def work() -> None:
        async with client(tmp_path) as session:

            async def note(progress: float, total: float | None, message: str | None) -> None:
                heard.append(message)
                if len(heard) == 1:
                    await session.call_tool("run_send", {"run_id": "heard", "name": "quote", "body": 7})

            wanted = {"order": "o", "run_id": "heard"}
            quoted = await session.call_tool("wait_for_quote", wanted, progress_callback=note)
            assert said(quoted)["result"] == 7

            waiting = asyncio.create_task(session.call_tool("wait_for_quote", {"order": "o", **DROPPED}))
            while (await session.call_tool("run_status", DROPPED)).is_error:
                await asyncio.sleep(0)
            await session.call_tool("run_cancel", {**DROPPED, "reason": "too late"})
            cancelled = await waiting
            assert cancelled.is_error
            assert cancelled.structured_content is not None
            assert cancelled.structured_content["summary"] == "too late"

    ask(work())
    assert "quote" in (heard[0] or "")


PRINTING = """
import atexit
import weft

app = weft.App()
print("printed by the import", flush=True)
atexit.register(print, "printed at the end")

@app.step
async def work() -> int:
    print("printed by a step")
    return 1

@app.workflow(mcp=True)
async def order(ctx: weft.Context) -> int:
    return await work()
"""


def test_what_a_program_prints_never_reaches_the_client(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PRINTING)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "order", "arguments": {}}},
    ]
    with subprocess.Popen(
        [WEFT, "mcp", "shop.py"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.write("".join(f"{json.dumps(message)}\n" for message in sent))
            program.stdin.flush()
            answers = [json.loads(program.stdout.readline())]
            while answers[-1].get("id") != 2:
                answers.append(json.loads(program.stdout.readline()))
            rest, printed = program.communicate(timeout=60)
        finally:
            program.kill()
    assert answers[-1]["result"]["structuredContent"]["result"] == 1
    assert rest == ""
    assert [f"printed {where}" in printed for where in ("by the import", "by a step", "at the end")] == [True] * 3
