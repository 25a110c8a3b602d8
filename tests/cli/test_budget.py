"""``weft budget``: what a run has spent, and raising its budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

APP = """
import weft

app = weft.App(url="sqlite:///weft.db")


@app.step
async def summarize(text: str) -> str:
    weft.task().spend(tokens=40)
    return text


@app.workflow(budget=weft.Budget(tokens=100))
async def digest(ctx: weft.Context, texts: list[str]) -> list[str]:
    return [await summarize(text) for text in texts]


if __name__ == "__main__":
    try:
        print(app.run(digest(["a", "b", "c"]), id="d-1"))
    except weft.RunFailed as failed:
        print(failed.failure.code)
"""


WEFT = str(Path(sys.executable).parent / "weft")


def said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_budget_is_shown_and_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)

    assert "budget.exceeded" in said(sys.executable, "app.py")
    assert "80 tokens spent, 20 tokens of 100 tokens left" in said(WEFT, "budget", "d-1")
    said(WEFT, "budget", "d-1", "--add", "tokens=50", "--reason", "one more")
    units = msgspec.json.decode(said(WEFT, "budget", "d-1", "--json"))["units"]
    assert {unit["unit"]: unit["limit"] for unit in units}["tokens"] == 150
    assert "80 tokens spent" in said(WEFT, "show", "d-1", "--tree")
    assert "of 150 tokens left" in said(WEFT, "explain", "d-1")
