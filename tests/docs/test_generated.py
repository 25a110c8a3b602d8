"""The reference pages say what the program says today, and every code has its page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.generated import DOCS, TITLES, TOKENS, pages, tokens_css
from weft.observe.error_pages import PAGES

SRC = Path(__file__).parents[2] / "src"
MARK = "ritten by `python -m tests.docs.generated`"


WRITTEN = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if MARK in path.read_text("utf-8"))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == pages().get(name), "write it again: .venv/bin/python -m tests.docs.generated"


def test_every_generated_page_is_written() -> None:
    assert sorted(pages()) == WRITTEN


def test_the_colours_of_the_web_ui_are_those_of_the_pictures() -> None:
    assert TOKENS.read_text() == tokens_css(), "write them again: .venv/bin/python -m tests.docs.generated"


def test_every_code_has_a_page() -> None:
    texts = (path.read_text("utf-8") for path in SRC.rglob("*.py"))
    found = {code for text in texts if re.search(r"\bcode ?=", text) for code in codes(ast.parse(text))}
    found = {code for code in found if code.partition(".")[0] in TITLES}  # a family that users can meet has a title
    assert "run.id_taken" in found, "the search finds what is there"
    assert sorted(found - set(PAGES)) == []


def codes(tree: ast.Module) -> Iterator[str]:
    """Every text that is given as a code: `code="run.id_taken"`, also where one of two is chosen."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="code", value=value) | ast.Assign(targets=[ast.Name(id="code")], value=value):
                texts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
                yield from (text for text in texts if isinstance(text, str) and "." in text)
