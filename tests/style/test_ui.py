"""The web UI in figures: the bytes that a browser loads, the lengths of its sources, and the types of the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.ui_types import TYPES, ui_types
from ui import build

KB = 1000
SOURCES = build.UI / "src"
LINES_MAX = 300
PAGE = "index.html"
RUNS = "src/screens/runs.tsx"
RUN = "src/screens/run.tsx"
PICTURE = "src/parts/picture-canvas.tsx"


@pytest.fixture(scope="module")
def manifest() -> Any:
    """What was built of which source. `make check` builds before it tests."""
    return json.loads(build.MANIFEST.read_text("utf-8"))


def test_the_first_rows_of_runs_take_130_kb(manifest: Any) -> None:
    assert gzipped(loaded(manifest, PAGE, RUNS)) <= 130 * KB


def test_a_picture_takes_75_kb_more(manifest: Any) -> None:
    assert gzipped(loaded(manifest, PICTURE) - loaded(manifest, PAGE, RUN)) <= 75 * KB


def test_everything_together_takes_450_kb() -> None:
    assert sum(file.stat().st_size for file in build.STATIC.rglob("*.gz")) <= 450 * KB


def test_the_wheel_gains_a_megabyte_at_most() -> None:
    assert sum(file.stat().st_size for file in build.STATIC.rglob("*") if file.is_file()) <= 1000 * KB


def test_no_source_of_the_ui_is_long() -> None:
    files = [file for kind in ("*.ts", "*.tsx", "*.css") for file in SOURCES.rglob(kind) if file != TYPES]
    lengths = {file.relative_to(SOURCES).as_posix(): len(file.read_text("utf-8").splitlines()) for file in files}
    assert {name: length for name, length in lengths.items() if length > LINES_MAX} == {}
    assert "main.tsx" in lengths, "the search finds what is there"


def test_the_types_of_the_ui_are_those_of_the_api() -> None:
    assert TYPES.read_text("utf-8") == ui_types(), "write them again: .venv/bin/python -m tests.docs.generated"


def loaded(manifest: Any, *sources: str) -> set[str]:
    """Return the scripts and styles that a browser loads for these sources."""
    found: set[str] = set()
    waiting = list(sources)
    while waiting:
        chunk = manifest[waiting.pop()]
        if chunk["file"] not in found:
            found |= {chunk["file"], *chunk.get("css", [])}
            waiting += chunk.get("imports", [])
    return found


def gzipped(files: set[str]) -> int:
    return sum(Path(build.STATIC, f"{file}.gz").stat().st_size for file in files)
