"""Tools of real MCP servers, over stdio and HTTP: also of servers that die, hang, lie, change and flood."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.mcp.toolbox import PICTURE, nested, serving_http
from weft.agents.mcp.failures import ToolFailed, ToolUnavailable
from weft.agents.mcp.servers import McpServer
from weft.agents.mcp.step import McpStep
from weft.steps.task import Executor
from weft.stores.memory import MemoryStore

ROOT = Path(__file__).parents[3]
NOBODY: Executor = None  # type: ignore[assignment]  # no tool needs a thread


def stdio(folder: Path, like: str = "", **options: Any) -> McpServer:
    """A server that is a child process."""
    command = [sys.executable, "-m", "tests.mcp.toolbox", str(folder), like]
    return weft.mcp("box", command=command, cwd=str(ROOT), **options)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder and the URL of a server over HTTP. Starting one takes a second, so that many tests share it."""
    folder = tmp_path_factory.mktemp("box")
    with serving_http(folder) as url:
        yield folder, url


@pytest.fixture
def box(place: tuple[Path, str]) -> Iterator[McpServer]:
    """A server over HTTP with its first tools."""
    folder, url = place
    yield weft.mcp("box", url=url)
    (folder / "like").unlink(missing_ok=True)


class Bench:
    """A store, and the step that calls tools."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.store = MemoryStore()
        self.step = McpStep(lambda: {server.name: server}, self.store.tool_pins, self.store.blobs.put)

    async def offered(self) -> dict[str, Any]:
        return {tool.name: tool for tool in await self.server.offered_tools(self.store, "")}

    async def call(self, tool: str, **given: Any) -> Any:
        fields = {"server": self.server.name, "tool": tool, **given}
        return msgspec.json.decode(await self.step.perform(msgspec.json.encode(fields), NOBODY))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        async def closed() -> Any:
            try:
                async with asyncio.timeout(60):
                    return await work
            finally:
                await self.server.close()

        return asyncio.run(closed())


# --- what is offered ----------------------------------------------------------------------------------------------


def test_tools_are_named_after_their_server_and_irreversible_unless_the_program_says_otherwise(box: McpServer) -> None:
    bench = Bench(box)

    tools = bench.run(bench.offered())

    add = tools["box__add"]
    assert add.description == "Add two numbers."
    assert add.effect == "irreversible", "what the server says about itself is a hint for people"
    assert add.kind == "mcp"
    assert add.given == {"server": "box", "tool": "add"}
    assert add.schema["required"] == ["a", "b"]


def test_a_program_names_tools_and_their_effects_with_wildcards(place: tuple[Path, str]) -> None:
    bench = Bench(weft.mcp("box", url=place[1], tools=["a*", "draw"], effects={"a*": "pure"}))

    tools = bench.run(bench.offered())

    assert {name: tool.effect for name, tool in tools.items()} == {
        "box__add": "pure",
        "box__ask": "pure",
        "box__draw": "irreversible",
    }


def test_a_tool_that_is_not_named_cannot_be_called(place: tuple[Path, str]) -> None:
    bench = Bench(weft.mcp("box", url=place[1], tools=["draw"]))

    with pytest.raises(weft.UsageError, match="box__hang"):
        bench.run(bench.call("hang"))


def test_a_schema_that_is_none_or_refers_elsewhere_is_not_offered(
    box: McpServer, place: tuple[Path, str], caplog: pytest.LogCaptureFixture
) -> None:
    (place[0] / "like").write_text("broken")
    bench = Bench(box)

    tools = bench.run(bench.offered())

    assert not {"box__broken", "box__remote"} & set(tools)
    assert "broken of the MCP server box is not offered" in caplog.text


def test_more_tools_than_an_agent_may_have_are_refused(box: McpServer, place: tuple[Path, str]) -> None:
    (place[0] / "like").write_text("many")
    bench = Bench(box)

    with pytest.raises(weft.LimitExceeded, match="offers 90 tools"):
        bench.run(bench.offered())


# --- calls --------------------------------------------------------------------------------------------------------


def test_a_tool_gives_its_structured_result(box: McpServer) -> None:
    bench = Bench(box)

    async def work() -> list[Any]:
        return await asyncio.gather(*(bench.call("add", arguments={"a": 1, "b": b}) for b in range(5)))

    assert bench.run(work()) == [{"sum": 1 + b} for b in range(5)]


def test_text_is_a_result_too(box: McpServer) -> None:
    bench = Bench(box)

    assert bench.run(bench.call("echo", arguments={"x": 1})) == ["{'x': 1}", "again"]


def test_a_result_with_nul_is_kept_without_it(box: McpServer) -> None:
    bench = Bench(box)

    assert bench.run(bench.call("echo", arguments={"exactly": "a\0b"})) == ["a\ufffdb", "again"]


@pytest.mark.parametrize("levels", [101, 150, 199])
def test_a_result_that_is_nested_too_deeply_is_kept_as_text(box: McpServer, levels: int) -> None:
    bench = Bench(box)

    kept = bench.run(bench.call("echo", arguments={"levels": levels}))

    assert json.loads(kept) == nested(levels)


def test_a_result_that_cannot_be_read_at_all_is_no_failure_of_the_call(place: tuple[Path, str], box: McpServer) -> None:
    bench, calls = Bench(box), place[0] / "calls"
    before = calls.read_text().count("echo") if calls.exists() else 0

    kept = bench.run(bench.call("echo", arguments={"levels": 220}))

    assert kept["unreadable"].endswith("The call was made; do not repeat it because of that.")
    assert calls.read_text().count("echo") == before + 1


def test_a_file_becomes_a_blob_that_the_run_holds(box: McpServer) -> None:
    bench = Bench(box)

    async def work() -> tuple[Any, bytes | None]:
        drawn = await bench.call("draw")
        digest = drawn["blob"]["at"].removeprefix("cas://sha256:")
        return drawn, await bench.store.blobs.get(digest)

    drawn, content = bench.run(work())

    assert drawn["type"] == "image"
    assert drawn["mime_type"] == "image/png"
    assert drawn["blob"]["$weft"] == "blob"
    assert content == PICTURE
    assert base64.b64encode(PICTURE).decode() not in str(drawn)


def test_an_error_of_a_tool_is_final(box: McpServer) -> None:
    bench = Bench(box)

    with pytest.raises(ToolFailed, match="no such city") as failed:
        bench.run(bench.call("fail"))

    assert bench.step.is_final(failed.value)


def test_a_result_that_breaks_the_schema_of_its_tool_is_refused(box: McpServer) -> None:
    bench = Bench(box)

    with pytest.raises(ToolFailed, match="does not fit its schema: sum"):
        bench.run(bench.call("lie"))


def test_a_question_of_a_server_is_returned_and_its_answer_goes_back(box: McpServer) -> None:
    bench = Bench(box)

    async def work() -> tuple[Any, Any]:
        asked = await bench.call("ask")
        answers = {"city": {"action": "accept", "content": {"city": "Rome"}}}
        return asked, await bench.call("ask", answers=answers, state=asked["state"])

    asked, done = bench.run(work())

    assert asked["weft.question"]["city"]["message"] == "Which city?"
    assert asked["weft.question"]["city"]["schema"]["required"] == ["city"]
    assert done == "accept Rome state-1"


# --- servers that misbehave ---------------------------------------------------------------------------------------


def test_a_server_that_dies_in_a_call_over_http_leaves_it_in_doubt_and_nobody_is_cancelled(tmp_path: Path) -> None:
    with serving_http(tmp_path) as url:
        _die(Bench(weft.mcp("box", url=url)))


@pytest.mark.proof
def test_a_child_that_dies_in_a_call_leaves_it_in_doubt_and_is_started_again_for_the_next_one(tmp_path: Path) -> None:
    bench = Bench(stdio(tmp_path))

    async def work() -> Any:
        with pytest.raises(ToolUnavailable) as lost:
            await bench.call("die")
        assert lost.value.in_doubt
        return await bench.call("add", arguments={"a": 2, "b": 3}), await bench.call("draw")

    added, drawn = bench.run(work())
    assert added == {"sum": 5}
    assert drawn["mime_type"] == "image/png"


def _die(bench: Bench) -> None:

    async def work() -> None:
        with pytest.raises(ToolUnavailable) as lost:
            await bench.call("die")
        assert lost.value.in_doubt
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    bench.run(work())


@pytest.mark.proof
def test_siblings_of_a_call_that_kills_the_server_are_in_doubt_too(tmp_path: Path) -> None:
    bench = Bench(stdio(tmp_path))

    async def work() -> list[Any]:
        await bench.call("add", arguments={"a": 1, "b": 1})
        hanging = asyncio.ensure_future(bench.call("hang"))
        while "hang" not in (tmp_path / "calls").read_text():
            await asyncio.sleep(0.01)
        return await asyncio.gather(hanging, bench.call("die"), return_exceptions=True)

    lost = bench.run(work())

    assert [type(one) for one in lost] == [ToolUnavailable, ToolUnavailable]
    assert all(one.in_doubt for one in lost)


@pytest.mark.proof
def test_a_server_that_hangs_is_given_up_and_can_be_called_again(tmp_path: Path) -> None:
    bench = Bench(stdio(tmp_path, timeout="2s"))

    async def work() -> Any:
        await bench.offered()
        with pytest.raises(ToolUnavailable, match="took longer than 2s") as late:
            await bench.call("hang")
        assert late.value.in_doubt
        return await bench.call("add", arguments={"a": 1, "b": 1})

    assert bench.run(work()) == {"sum": 2}


@pytest.mark.proof
def test_a_server_that_floods_is_ended(tmp_path: Path) -> None:
    bench = Bench(stdio(tmp_path))

    with pytest.raises(ToolUnavailable, match="more than 8,388,608 bytes"):
        bench.run(bench.call("flood"))


def test_a_server_that_cannot_be_reached_was_not_asked(tmp_path: Path) -> None:
    with serving_http(tmp_path) as url:
        bench = Bench(weft.mcp("box", url=url))
    with pytest.raises(ToolUnavailable) as unsent:
        bench.run(bench.call("add"))

    assert not unsent.value.in_doubt


def test_a_command_that_does_not_exist_says_so() -> None:
    bench = Bench(weft.mcp("box", command="/no/such/program"))

    with pytest.raises(ToolUnavailable, match="No such file") as lost:
        bench.run(bench.call("add"))
    assert not lost.value.in_doubt


def test_a_program_that_is_no_mcp_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.agents.mcp.wire.CONNECT_SECONDS", 0.5)
    bench = Bench(weft.mcp("box", command=[sys.executable, "-c", "import time; time.sleep(60)"]))

    with pytest.raises(ToolUnavailable, match=r"did not answer within 0\.5 s"):
        bench.run(bench.call("add"))


# --- pins ---------------------------------------------------------------------------------------------------------


def test_a_changed_tool_is_withheld_until_it_is_accepted(box: McpServer, place: tuple[Path, str]) -> None:
    bench, folder = Bench(box), place[0]

    async def work() -> None:
        assert "box__add" in await bench.offered()
        (folder / "like").write_text("changed")
        assert "box__add" not in await bench.offered()
        with pytest.raises(weft.Refused) as refused:
            await bench.call("add", arguments={"a": 1, "b": 1})
        assert refused.value.code == "tool.changed"
        assert bench.step.is_final(refused.value)
        (pin,) = [one for one in await bench.store.tool_pins.list("box") if one.seen]
        assert "eve" in pin.seen
        assert "eve" not in pin.accepted
        assert await bench.store.tool_pins.accept(pin)
        assert "box__add" in await bench.offered()

    bench.run(work())


def test_a_tool_that_changes_back_needs_no_acceptance(box: McpServer, place: tuple[Path, str]) -> None:
    bench, folder = Bench(box), place[0]

    async def work() -> None:
        for like in ("", "changed", ""):
            (folder / "like").write_text(like)
            assert ("box__add" in await bench.offered()) == (like == "")
        assert not [one for one in await bench.store.tool_pins.list() if one.seen]

    bench.run(work())


def test_a_new_tool_is_withheld(box: McpServer, place: tuple[Path, str]) -> None:
    bench, folder = Bench(box), place[0]

    async def work() -> None:
        await bench.offered()
        (folder / "like").write_text("grown")
        tools = await bench.offered()
        assert "box__new" not in tools
        assert "box__add" in tools
        with pytest.raises(weft.Refused):
            await bench.call("new")

    bench.run(work())


# --- what a program may say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "a command or a url"),
        ({"command": "x", "url": "https://a.example/mcp"}, "a command or a url"),
        ({"command": ""}, "'' is not a command. Write command="),
        ({"command": 7}, "7 is not a command"),
        ({"command": ["x", 7]}, "is not a command"),
        ({"command": 'x "y'}, "No closing quotation. Write command="),
        ({"command": "x", "timeout": "0s"}, 'is not more than 0 s. Write timeout="1m"'),
        ({"command": "x", "env": 7}, "env=7"),
        ({"command": "x", "effects": 7}, "effects=7"),
        ({"url": "https://a.example", "headers": 7}, "headers=7"),
        ({"url": 7}, "not the URL"),
        ({"url": "http://mcp.example/mcp"}, "over http"),
        ({"url": "ftp://mcp.example"}, "not the URL"),
        ({"url": "https://ann:pw@mcp.example/"}, "not the URL"),
        ({"command": "x", "effects": {"*": "none"}}, "none of"),
        ({"command": "x", "tools": "search"}, "not a list of names"),
        ({"command": "x", "tools": [7]}, "not a list of names"),
        ({"url": "https://a.example", "headers": {"Host": "b"}}, "host"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_said(options: dict[str, Any], what: str) -> None:
    with pytest.raises(weft.UsageError, match=what):
        weft.mcp("box", **options)
    for name in ("b x", "", 7):
        with pytest.raises(weft.BadValue, match="1 to 32"):
            weft.mcp(name, command="x")  # type: ignore[arg-type]


def test_an_address_that_is_not_public_is_not_called() -> None:
    bench = Bench(weft.mcp("box", url="https://10.0.0.1/mcp"))

    with pytest.raises(ToolUnavailable, match="not a public address") as refused:
        bench.run(bench.call("add"))
    assert not refused.value.in_doubt
