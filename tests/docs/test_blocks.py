"""Every piece of Python in the README and the docs runs as it stands; every command and file that they name exists."""

import re
import sys
import types
from pathlib import Path

import pytest

from weft.cli.commands import command_line

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command where it is typed: at the start of a line, after a prompt, or in back quotes.
COMMAND = re.compile(r"(?:^\s*(?:\$ )?|`)weft ([a-z-]+)", re.MULTILINE)
NO_VERB = {"is", "needs"}


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, each with the line on which it begins."""
    text = page.read_text()
    return [(text[: m.start(2)].count("\n"), m[2]) for m in FENCE.finditer(text) if m[1] == language]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_URL", "memory://")
    # One module per page: later blocks see what earlier ones made, and hints are looked up in it.
    module = types.ModuleType(f"page_{page.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for line, source in blocks(page, "python"):
        exec(compile("\n" * line + source, page.name, "exec"), module.__dict__)
    assert not list(tmp_path.iterdir()), "a page must leave nothing behind"


def test_every_command_that_is_named_exists() -> None:
    known = set(command_line().commands)
    named = {
        (page.name, verb)
        for page in PAGES
        for part in (page.read_text(), *(source for _, source in blocks(page, "sh")))
        for verb in COMMAND.findall(part)
        if verb not in NO_VERB
    }
    assert {verb for _, verb in named} & {"show", "run"}, "the pattern finds what is there"
    assert [(page, verb) for page, verb in sorted(named) if verb not in known] == []


def test_every_link_leads_somewhere() -> None:
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        if "://" not in link and not (page.parent / link.partition("#")[0]).exists()
    ]
    assert broken == []
