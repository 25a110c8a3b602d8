"""``weft logs``: what the steps of a run printed, for people and for programs."""

from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import Weft

PRINTING = """
import logging, weft

app = weft.App()

@app.step(retries=weft.Retry(2, delay="1ms"))
async def charge(cents: int) -> int:
    print("charging", cents)
    if weft.task().attempt == 1:
        logging.getLogger("bank").error("no answer")
        raise OSError("no answer")
    print("\\x1b[31mdone\\x1b[0m")
    return cents

@app.step
def chatter(lines: int) -> None:
    for n in range(lines):
        print(n)

@app.workflow
async def order(ctx: weft.Context, cents: int) -> int:
    return await charge(cents)

@app.workflow
async def talk(ctx: weft.Context, lines: int) -> None:
    await chatter(lines)
"""


@pytest.fixture
def printed(weft: Weft, folder: Path) -> Weft:
    (folder / "app.py").write_text(PRINTING)
    assert weft("run", "app.py", "order", "cents=42", "--id", "o-1").code == 0
    return weft


def test_lines_are_shown_by_place_and_attempt(printed: Weft) -> None:
    said = printed("logs", "o-1")

    assert said.code == 0
    shown = [line if not line.startswith("  ") else line[2:].partition("  ")[2] for line in said.out.splitlines()]
    assert shown == [
        "charge",
        "charging 42",
        "ERROR bank: no answer",
        "charge, attempt 2",
        "charging 42",
        "\\e[31mdone\\e[0m",
    ]


def test_programs_get_one_object_per_line(printed: Weft) -> None:
    lines = [msgspec.json.decode(line) for line in printed("logs", "o-1", "--json", "--follow").out.splitlines()]

    assert [(line["number"], line["attempt"], line["level"], line["text"]) for line in lines] == [
        (1, 1, "info", "charging 42"),
        (2, 1, "error", "no answer"),
        (3, 2, "info", "charging 42"),
        (4, 2, "info", "\x1b[31mdone\x1b[0m"),
    ]
    assert {line["place"] for line in lines} == {"charge"}


def test_only_some_lines_are_asked_for(printed: Weft) -> None:
    assert "no answer" in printed("logs", "o-1", "--level", "warning").out
    assert "charging" not in printed("logs", "o-1", "--level", "warning").out
    assert "No line of o-1 was found." in printed("logs", "o-1", "--place", "ship").out


def test_what_was_left_out_is_said(printed: Weft) -> None:
    printed("run", "app.py", "talk", "lines=3000", "--id", "t-1")

    assert "… 1,900 lines left out" in printed("logs", "t-1").out


def test_a_level_that_does_not_exist_is_refused(printed: Weft) -> None:
    said = printed("logs", "o-1", "--level", "loud")

    assert said.code == 2
    assert "'loud' is not one of debug, info" in said.err


def test_a_run_whose_steps_printed_nothing_says_so(over: Weft) -> None:
    assert "have printed and logged nothing" in over("logs", "order-1").out
