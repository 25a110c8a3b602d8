"""``weft tools``: list, accept, discard and rename."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft as library
from tests.cli.conftest import Weft
from weft.runtime.stored_tools import StoredTools
from weft.runtime.tool_settings import ToolSettings


def make_tool(folder: Path) -> None:
    """Store a tool that waits to be accepted."""

    async def make() -> None:
        app = library.App(f"sqlite:///{folder}/weft.db")
        async with app:
            settings = ToolSettings(promote=1, promotion="ask")
            tools = StoredTools(app.service.store.definitions, app.service.clock, settings)
            await tools.used("", "r-1", [{"step": "table_sort", "field": "a"}, {"step": "top_k", "k": 3}])

    asyncio.run(make())


def test_a_proposed_tool_is_listed_accepted_renamed_and_discarded(weft: Weft, folder: Path) -> None:
    make_tool(folder)

    (tool,) = weft("tools", "list", "--json").json()["tools"]
    assert (tool["name"], tool["status"], tool["runs"]) == ("sort_top_k", "proposed", ["r-1"])
    assert tool["schema"]["required"] == ["k"]
    assert "sort_top_k" in weft("tools").out
    assert weft("tools", "accept", "sort_top_k").out.strip() == "sort_top_k is accepted."
    assert weft("tools", "rename", "sort_top_k", "best", "--json").json()["name"] == "best"
    assert weft("tools", "discard", "best").out.strip() == "best is discarded."


def test_a_tool_that_does_not_exist_is_an_error_with_the_nearest_name(weft: Weft, folder: Path) -> None:
    make_tool(folder)

    said = weft("tools", "accept", "sort_top")
    assert said.code != 0
    assert "sort_top_k" in said.err
    assert weft("tools", "accept").code != 0


def test_without_tools_the_list_says_where_they_come_from(weft: Weft, folder: Path) -> None:
    assert weft("run", "app.py", "hello", "name=a").code == 0

    assert "succeeded in two runs" in weft("tools", "list").out
