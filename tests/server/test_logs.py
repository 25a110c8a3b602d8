"""What steps print, over the API: pages, filters, live, and hostile text.

Each test has a server of its own, because pytest replaces the streams between a fixture and its test.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

import weft
from tests.server.kit import API, covers, serving
from tests.server.test_live import Heard, Listener, listening, off_loop

HOSTILE = "\x1b[2J<script>alert(1)</script>\u202e"


def printing() -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def say(words: list[str]) -> None:
        for word in words:
            print(word)
        logging.getLogger("shop").error("that was all")

    @app.workflow
    async def talk(ctx: weft.Context, words: list[str]) -> None:
        await say(words)
        if words[-1:] == ["wait"]:
            await ctx.receive("go")
            await say(["last"])

    return app


@covers("listLogs")
def test_lines_come_in_pages_with_their_place_and_attempt() -> None:
    with serving(printing()) as server:
        server.result(server.start("talk", "l-1", words=["a", "b", HOSTILE]))

        first = server.get(f"{API}/runs/l-1/logs?limit=2").json
        rest = server.get(f"{API}/runs/l-1/logs?after={first['after']}").json

        assert [line["text"] for line in first["lines"]] == ["a", "b"]
        assert {name: value for name, value in first["lines"][0].items() if name != "at"} == {
            "number": 1, "place": "say", "attempt": 1, "level": "info", "source": "stdout", "text": "a",
        }  # fmt: skip
        assert [line["text"] for line in rest["lines"]] == [HOSTILE, "that was all"]
        assert (rest["after"], rest["last"], rest["left_out"], rest["is_over"]) == (None, 4, 0, True)


def test_lines_are_found_by_level_and_place() -> None:
    with serving(printing()) as server:
        server.result(server.start("talk", "l-2", words=["a"]))

        def texts(query: str) -> list[str]:
            return [line["text"] for line in server.get(f"{API}/runs/l-2/logs?{query}").json["lines"]]

        assert texts("level=error") == ["that was all"]
        assert texts("place=say") == ["a", "that was all"]
        assert texts("place=elsewhere") == []


@pytest.mark.parametrize("query", ["level=loud", "limit=0", "limit=501", "after=-1", "colour=red"])
def test_a_query_that_makes_no_sense_is_refused(query: str) -> None:
    with serving(printing()) as server:
        server.start("talk", "l-3", words=[])

        assert server.get(f"{API}/runs/l-3/logs?{query}").status == 422


def test_the_lines_of_a_run_that_does_not_exist_are_not_found() -> None:
    with serving(printing()) as server:
        assert server.get(f"{API}/runs/nobody/logs").status == 404
        assert server.get(f"{API}/runs/nobody/logs/live").status == 404


@covers("followLogs")
def test_lines_are_followed_until_the_run_is_over() -> None:
    with serving(printing()) as server:
        server.start("talk", "l-4", words=["a", "wait"])

        async def main() -> list[Heard]:
            async with Listener(server, f"{API}/runs/l-4/logs/live") as client:
                heard = [await client.next() for _ in range(3)]
                await off_loop(server.post, f"{API}/runs/l-4/messages", {"name": "go"})
                return heard + await client.all()

        heard = listening(main())
        assert [(one.event, one.id) for one in heard] == [*(("line", f"{n}") for n in range(1, 6)), ("end", "")]
        assert [one.data["text"] for one in heard[:-1]] == ["a", "wait", "that was all", "last", "that was all"]
        assert heard[-1].data == {"status": "completed"}


def test_a_client_that_comes_back_goes_on_where_it_stood() -> None:
    with serving(printing()) as server:
        server.result(server.start("talk", "l-5", words=["a", "b"]))

        async def main(last: str) -> tuple[int, list[str]]:
            async with Listener(server, f"{API}/runs/l-5/logs/live", last) as client:
                return client.status, [one.id for one in await client.all()]

        assert listening(main("1")) == (200, ["2", "3", ""])
        assert listening(main("3")) == (204, [])


def test_a_client_reads_lines_like_a_handle() -> None:
    with serving(printing()) as server:
        server.start("talk", "l-6", words=["a", "wait"])

        async def main() -> list[str]:
            async with weft.Client(server.url) as client:
                handle = client.get("l-6")
                seen = []
                async for line in handle.logs(follow=True):
                    seen.append(line.text)
                    if line.text == "wait":
                        await handle.send("go")
                assert [line.text async for line in handle.logs(after=3)] == seen[3:]
                return seen

        assert asyncio.run(main()) == ["a", "wait", "that was all", "last", "that was all"]
