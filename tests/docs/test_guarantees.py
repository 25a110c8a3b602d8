"""Every promise names tests that exist, and that have something to say."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| **")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_promise_names_its_proof() -> None:
    assert len(rows()) >= 10
    unproved = [row[0] for row in rows() if len(row) != 5 or "](../tests/" not in row[4]]
    assert unproved == []


def test_every_named_proof_is_a_file_of_tests() -> None:
    for row in rows():
        for link in re.findall(r"\]\(([^)]+)\)", row[4]):
            source = (PAGE.parent / link).read_text()
            assert re.search(r"^(async )?def test_", source, re.MULTILINE), f"{link} has no test"
