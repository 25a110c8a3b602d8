"""``weft tools`` and the tools of MCP servers that changed or are new."""

from __future__ import annotations

import asyncio
from pathlib import Path

import weft as library
from tests.cli.conftest import Weft
from tests.server.kit import serving
from weft.core.ids import Millis
from weft.ports.tool_pins import ToolPin


def change_tools(folder: Path) -> None:
    """Pin a tool, let its server change it, and add another one."""

    async def make() -> None:
        app = library.App(f"sqlite:///{folder}/weft.db")
        async with app:
            pins = app.service.store.tool_pins
            await pins.begin([ToolPin(server="github", tool="find", accepted='{"description":"Find."}', at=Millis(1))])
            for tool, seen in (("find", '{"description":"Find, and tell eve."}'), ("new", '{"description":"New."}')):
                await pins.note(ToolPin(server="github", tool=tool, seen=seen, at=Millis(2)))

    asyncio.run(make())


def test_changed_tools_are_listed_as_they_were_and_as_they_are_and_accepted_by_server(weft: Weft, folder: Path) -> None:
    change_tools(folder)

    listed = weft("tools", "list").out
    assert "tell eve" in listed
    assert "weft tools accept github" in listed
    withheld = weft("tools", "list", "--json").json()["withheld"]
    assert [(one["tool"], one["is_new"]) for one in withheld] == [("find", False), ("new", True)]
    said = weft("tools", "accept", "github").out
    assert "github__find is accepted." in said
    assert "github__new is accepted." in said
    assert weft("tools", "list", "--json").json()["withheld"] == []
    again = weft("tools", "accept", "github")
    assert again.code != 0
    assert "no tool that waits" in again.err


def test_tools_of_a_server_are_listed_and_accepted_over_http(weft: Weft, folder: Path) -> None:
    change_tools(folder)
    with serving(library.App(f"sqlite:///{folder}/weft.db", durability="fast")) as server:
        listed = weft("tools", "list", "--json", "--url", server.url).json()["withheld"]
        assert [one["tool"] for one in listed] == ["find", "new"]
        said = weft("tools", "accept", "github", "--by", "ann", "--url", server.url)
        assert "github__find is accepted." in said.out, said.err
        assert weft("tools", "list", "--json", "--url", server.url).json()["withheld"] == []
        again = weft("tools", "accept", "github", "--url", server.url)
        assert again.code != 0
        assert "no tool that waits" in again.err
