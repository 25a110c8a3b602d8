"""Text of users at a terminal: escapes and line breaks in titles, failures and reasons are spelled out."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

import weft
from tests.cli.conftest import Weft
from weft.authoring.client import Client
from weft.authoring.notices import Notices
from weft.core.escapes import escape_controls, escape_line
from weft.core.ids import RunId
from weft.errors import BadValue
from weft.observe.questions import open_in
from weft.server.logs import TextLines

HOSTILE = "\x1b[2Jgone\x1b]0;owned\x07\nfake-1   completed\r\u202eabc\x9b31m"
BREAKS = ("\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029")


@pytest.fixture
def store(folder: Path) -> str:
    """A store with a run that asks, one that failed and one that was cancelled, all with hostile text."""
    url = f"sqlite:///{folder / 'weft.db'}"
    app = weft.App(url)

    @app.step(retries=0)
    async def fall() -> None:
        raise ValueError(HOSTILE)

    @app.workflow
    async def asks(ctx: weft.Context) -> None:
        await ctx.ask("may", title=HOSTILE, about={"text": HOSTILE})

    @app.workflow
    async def fails(ctx: weft.Context) -> None:
        await fall()

    @app.workflow
    async def waits(ctx: weft.Context, text: str) -> str:
        await ctx.receive("never")
        return text

    @app.workflow
    async def gives(ctx: weft.Context, text: str) -> str:
        return text

    async def main() -> None:
        async with app:
            await app.start(asks, id="asks-1")
            failed = await app.start(fails, id="fails-1")
            cancelled = await app.start(waits(HOSTILE), id="waits-1")
            given = await app.start(gives(HOSTILE), id="gives-1")
            await cancelled.cancel(HOSTILE)
            await given.result()
            while not await open_in(app.service, await app.service.row(RunId("asks-1"))):
                await asyncio.sleep(0.01)
            for handle in (failed, cancelled):
                with pytest.raises(weft.WeftError):
                    await handle.result()

    asyncio.run(main())
    return url


COMMANDS = (
    ["list"],
    ["inbox"],
    ["inbox", "asks-1:may"],
    *([verb, run] for verb in ("show", "explain", "events") for run in ("asks-1", "fails-1", "waits-1", "gives-1")),
    ["watch", "fails-1"],
    ["watch", "waits-1"],
    ["list", "--json"],
    ["show", "fails-1", "--json"],
    ["inbox", "--json"],
)


def test_nothing_that_a_user_wrote_reaches_the_terminal_as_a_command(weft: Weft, store: str) -> None:
    told = ""
    for words in COMMANDS:
        spoken = weft(*words, "--url", store)
        text = spoken.out + spoken.err
        told += text
        unseen = {char for char in text if not char.isprintable() and char not in "\n\t"}
        assert not unseen, (words, unseen)
        assert not any(line.startswith("fake-1") for line in text.splitlines()), (words, text)
    assert told.count("\\e[2Jgone") > 10, told


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\nb", "a\0b", "x" * 201, "a/b"])
def test_a_name_that_no_workflow_can_have_starts_nothing(weft: Weft, folder: Path, name: str) -> None:
    said = weft("start", name)

    assert said.code != 0
    assert "weft help value.bad_name" in said.err
    assert not {char for char in said.out + said.err if not char.isprintable() and char != "\n"}

    async def by_client() -> None:
        async with Client("sqlite:///weft.db") as client:
            await client.start(name)

    with pytest.raises(BadValue, match="name"):
        asyncio.run(by_client())
    assert "No runs" in weft("list").out


def test_a_title_is_one_line_of_a_question(weft: Weft, store: str) -> None:
    shown = weft("inbox", "asks-1:may", "--url", store).out.splitlines()

    assert any(line.startswith("question ") and r"\nfake-1" in line for line in shown)


def test_what_a_run_waits_for_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Notices("memory://", named=True).say(f"waits for an answer to {HOSTILE}")

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_control_characters_are_spelled_out() -> None:
    assert escape_controls("a\x1b[31m\x07\x7f\x9b\u202e") == "a\\e[31m\\x07\\x7f\\x9b\\u202e"
    assert escape_controls("one\n\ttwo ä 漢 👍") == "one\n\ttwo ä 漢 👍"
    assert escape_line("one\n\ttwo\r") == "one\\n\\ttwo\\r"
    for char in BREAKS:
        assert len(escape_line(f"a{char}b").splitlines()) == 1


def test_the_log_at_a_terminal_has_one_line_per_record() -> None:
    record = logging.makeLogRecord({"msg": f"run failed: {HOSTILE}", "levelname": "WARNING"})

    text = TextLines().format(record)

    assert text.isprintable()
