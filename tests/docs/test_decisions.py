"""Every decision has a page with the same four parts, and the index lists it."""

from pathlib import Path

import pytest

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
INDEX = DECISIONS / "README.md"
PAGES = sorted(page for page in DECISIONS.glob("*.md") if page != INDEX)
PARTS = ["**Context.**", "**Decision.**", "**What it costs.**", "**What would change our mind.**"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_has_four_parts_and_fits_a_screen(page: Path) -> None:
    title, *paragraphs = page.read_text().strip().split("\n\n")
    assert title.startswith("# ")
    assert [paragraph[: len(part)] for paragraph, part in zip(paragraphs, PARTS, strict=True)] == PARTS
    assert len(page.read_text().splitlines()) <= 30


def test_the_index_lists_every_decision() -> None:
    assert len(PAGES) >= 10
    assert [page.name for page in PAGES if f"]({page.name})" not in INDEX.read_text()] == []
