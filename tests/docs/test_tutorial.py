"""The tutorial, typed into an empty folder: every file, every command, and what one sees.

Two things are not typed: the environment is made beforehand, and the port is a free one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.transcript import Command, File, Shell, apart, fits, parts
from tests.servers import free_port

PAGE = Path(__file__).parents[2] / "docs/tutorial.md"
PREPARED = ("python -m venv", "pip install")
PORT = "8420"
AS_A_TERMINAL = "import sys\nsys.stdout.reconfigure(line_buffering=True)\n"
"""Lines are seen as soon as they are printed, and whole."""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("WEFT_", "PYTEST_", "PYTHON"))
    }
    customized = tmp_path / "terminal"
    customized.mkdir()
    (customized / "sitecustomize.py").write_text(AS_A_TERMINAL)
    environment |= {
        "PYTHONPATH": str(customized),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the plugins of this project are not those of a reader
        "PYTEST_PLUGINS": "weft.testing.plugin",
    }
    typing = Shell(tmp_path, environment)
    yield typing
    typing.close()


@pytest.mark.proof
def test_a_reader_who_types_the_tutorial_sees_what_it_says(shell: Shell, tmp_path: Path) -> None:
    port = str(free_port())
    folder = tmp_path
    for part in parts(PAGE.read_text()):
        match part:
            case File():
                part.write(folder)
            case Command(typed) if typed.startswith(PREPARED):
                continue
            case Command(typed, seen):
                shell.type(Command(typed.replace(PORT, port), tuple(line.replace(PORT, port) for line in seen)))
                folder = tmp_path / "shop"


def test_the_tutorial_has_ten_steps() -> None:
    steps = [line for line in PAGE.read_text().splitlines() if line.startswith("## ") and line[3].isdigit()]
    assert [step.split(".")[0] for step in steps] == [f"## {number}" for number in range(1, 11)]
    typed = [part for part in parts(PAGE.read_text()) if isinstance(part, Command)]
    assert len(typed) > 25


@pytest.mark.parametrize(
    ("expected", "line", "is_same"),
    [
        ("asleep until 10:04:31", "asleep until 23:59:01", True),
        ("2 passed in 0.31s", "2 passed in 12.04s", True),
        ("…/app.py: fits", "/tmp/x/shop/app.py: fits", True),
        ("o-1 completed 3 seconds ago; done", "o-1 completed just now; done", True),
        ("o-1 completed 3 seconds ago; done", "o-1 completed never; done", False),
        ("charging o-1", "charging o-2", False),
    ],
)
def test_times_and_what_is_left_out_may_differ_and_nothing_else(expected: str, line: str, is_same: bool) -> None:
    assert fits(expected, line) is is_same


def test_lines_that_two_programs_wrote_at_once_are_taken_apart() -> None:
    page = ("charging o-5", '{"id":"o-5"}')
    assert apart('charging o-5{"id":"o-5"}', page) == ["charging o-5", '{"id":"o-5"}']
    assert apart("charging o-5", page) == ["charging o-5"]
    assert apart("something else", page) == ["something else"]


def test_progress_that_the_page_does_not_show_is_passed_over() -> None:
    asked = 'weft: o-4 running: waits for an answer to "Ship box-o-4?"'
    assert apart("weft: o-4 running: ship, attempt 3 of 5 after ConnectionError: no answer, 0s", [asked]) == []
    assert apart(asked, [asked]) == [asked]
    assert apart("weft: o-4 failed: ship", [asked]) == ["weft: o-4 failed: ship"]
