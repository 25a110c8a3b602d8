"""``weft mcp``: the MCP server as a child process of a client."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from tests import scale
from tests.mcp.clients import answering, ask, said

OFFICE = Path(__file__).parent.parent / "mcp" / "office.py"
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
