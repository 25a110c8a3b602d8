"""``weft budget``: what a run has spent, and raising its budget."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.cli.conftest import Weft

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
"""


def test_a_budget_is_shown_and_raised(weft: Weft, folder: Path) -> None:
    (folder / "app.py").write_text(APP)

    ran = weft("run", "app.py", "digest", 'texts=["a", "b", "c"]', "--id", "d-1")
    assert ran.code == 1
    assert "weft budget d-1 --add tokens=AMOUNT" in " ".join(ran.err.split())
    assert "80 tokens spent, 20 tokens of 100 tokens left" in weft("budget", "d-1").out
    assert weft("budget", "d-1", "--add", "tokens=50", "--reason", "one more").code == 0
    units = msgspec.json.decode(weft("budget", "d-1", "--json").out)["units"]
    assert {unit["unit"]: unit["limit"] for unit in units}["tokens"] == 150
    assert "80 tokens spent" in weft("show", "d-1", "--tree").out
    assert "of 150 tokens left" in weft("explain", "d-1").out
