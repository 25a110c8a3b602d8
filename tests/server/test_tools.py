"""Stored tools over HTTP: listed by readers, changed by operators, each tenant its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from tests.server.kit import API, Server, covers, serving
from weft.runtime.stored_tools import StoredTools
from weft.runtime.tool_settings import ToolSettings


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def make() -> None:
        app = weft.App(url, durability="fast")
        async with app:
            tools = StoredTools(app.service.store.definitions, app.service.clock, ToolSettings(promote=1))
            await tools.used("", "r-1", [{"step": "top_k", "k": 3}])
            await tools.used("acme", "r-2", [{"step": "table_sort", "field": "a"}])

    asyncio.run(make())
    with serving(weft.App(url, durability="fast")) as found:
        yield found


@covers("listTools", "acceptTool", "discardTool", "renameTool")
def test_the_tools_of_a_tenant_are_listed_and_changed(server: Server) -> None:
    (tool,) = server.get(f"{API}/tools").json["tools"]
    assert (tool["name"], tool["status"], tool["pipeline"]) == (
        "top_k",
        "accepted",
        [{"step": "top_k", "k": {"$hole": "k"}}],
    )

    assert server.ask("POST", f"{API}/tools/top_k/discard", {"by": "ann"}).json["status"] == "discarded"
    assert server.ask("POST", f"{API}/tools/top_k/accept", {}).json["status"] == "accepted"
    assert server.ask("POST", f"{API}/tools/top_k/rename", {"to": "first"}).json["name"] == "first"
    assert server.ask("POST", f"{API}/tools/top_k/accept", {}).status == 404
    assert server.ask("POST", f"{API}/tools/first/rename", {"to": "no name"}).status == 422


@covers("acceptToolServer")
def test_only_what_waits_of_an_mcp_server_can_be_accepted(server: Server) -> None:
    answer = server.ask("POST", f"{API}/tool-servers/github/accept", {})
    assert answer.status == 404
    assert "no tool that waits" in answer.json["detail"]
