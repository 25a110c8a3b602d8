"""Every piece of Python in the README and the docs runs as it stands; every command and file that they name exists."""

import json
import re
import sys
import tomllib
import types
from pathlib import Path

import pytest
import yaml

import weft
from tests.blocking.notebook import run_cells
from weft.cli.commands import command_line

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TYPED = ROOT / "docs/tutorial.md"  # its blocks are typed into files by test_tutorial.py
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command where it is typed: at the start of a line, after a prompt, or in back quotes.
COMMAND = re.compile(r"(?:^\s*(?:\$ )?|`)weft ([a-z-]+)", re.MULTILINE)
NAMED = re.compile(r"[\"'` ]weft ([a-z][a-z-]*)")
SOURCES = Path(weft.__file__).parent
LINE = re.compile(r"(?:^\s*(?:\$ )?|`)weft ([a-z-]+)((?: [^`\n#;&|]*)?)", re.MULTILINE)
OPTION = re.compile(r"(?<=\s)(--[a-z][a-z-]*|-[a-z])(?=[\s=]|$)")
NO_VERB = {"is", "needs"}


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, each with the line on which it begins."""
    text = page.read_text()
    return [(text[: m.start(2)].count("\n"), m[2]) for m in FENCE.finditer(text) if m[1] == language]


EXECUTED = [page for page in PAGES if page != TYPED and blocks(page, "python")]


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_URL", "memory://")
    # One module per page: later blocks see what earlier ones made, and hints are looked up in it.
    module = types.ModuleType(f"page_{page.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for line, source in blocks(page, "python"):
        exec(compile("\n" * line + source, page.name, "exec"), module.__dict__)
    assert not list(tmp_path.iterdir()), "a page must leave nothing behind"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "ipython")], ids=lambda page: page.name)
def test_the_cells_of_a_page_run_in_a_notebook(page: Path, tmp_path: Path) -> None:
    ran = run_cells(tmp_path, *(source for _, source in blocks(page, "ipython")))
    assert ran.returncode == 0, ran.stdout + ran.stderr


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


def test_every_command_that_a_message_names_exists() -> None:
    known = {*command_line().commands, "command"}
    named = {
        (path.name, verb) for path in SOURCES.rglob("*.py") for verb in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(named) > 50, "the pattern finds what is there"
    assert [(file, verb) for file, verb in sorted(named) if verb not in known] == []


def test_every_option_that_is_named_exists() -> None:
    options = {
        name: {
            "--help",
            *(flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)),
        }
        for name, command in command_line().commands.items()
    }
    named = {
        (page.relative_to(ROOT).as_posix(), verb, option)
        for page in PAGES
        for verb, rest in LINE.findall(page.read_text())
        for option in OPTION.findall(rest)
        if verb in options
    }
    assert len(named) > 50, "the pattern finds what is there"
    assert [entry for entry in sorted(named) if entry[2] not in options[entry[1]]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_documents_on_a_page_can_be_read(page: Path) -> None:
    for _, source in blocks(page, "json"):
        json.loads(source)
    for _, source in blocks(page, "toml"):
        tomllib.loads(source)
    for _, source in blocks(page, "yaml"):
        for document in yaml.safe_load_all(source):
            if document.get("weft") == "steps/1":
                assert weft.App("memory://").steps(document) == sorted(document["steps"])
            elif document.get("weft") == "graph/1":
                assert weft.Graph.of(document).to_dict()["name"] == document["name"]


def test_every_block_is_closed_and_has_a_known_language() -> None:
    known = {"", "console", "dockerfile", "ini", "ipython", "json", "py", "python", "sh", "sql", "toml", "yaml"}
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
        assert set(fences[::2]) <= known, f"{page.name}: {set(fences[::2]) - known}"
        assert set(fences[1::2]) <= {""}, f"{page.name} has a block that is not closed"
