"""Goals, frozen plans and stored graphs are run from the command line like any workflow."""

from pathlib import Path

import pytest

from tests.cli.conftest import Weft

APP = """
from typing import Any

import weft

app = weft.App()

@app.step(gives="total")
def price(order_id: str) -> int:
    return len(order_id)

@app.step(gives="tax")
def tax(total: int, rate: float) -> float:
    return total * rate

@app.step(gives="invoice")
def invoice(total: int, tax: float) -> str:
    return f"{total}+{tax}"

@app.step
def ship(invoice: str) -> str:
    return f"sent {invoice}"

app.goal("bill", invoice)
app.goal("deliver", ship)
app.graph({
    "weft": "graph/1",
    "name": "echo",
    "input": {"text": "string", "number": "integer", "tags": "string[]", "free": "any"},
    "nodes": {"only": {"pass": True}},
    "output": {"all": "${input}"},
})

@app.workflow
async def code(text: str, number: int, tags: list[str], free: Any) -> dict[str, Any]:
    return {"all": {"text": text, "number": number, "tags": tags, "free": free}}
"""


@pytest.fixture
def goals(weft: Weft, folder: Path) -> Weft:
    (folder / "goals.py").write_text(APP)
    return weft


def test_a_goal_run_prints_what_its_goals_give(goals: Weft) -> None:
    assert goals("run", "goals.py", "bill", "order_id=17", "rate=0.5").json() == {"invoice": "2+1.0"}


def test_a_goal_that_gives_nothing_by_name_prints_what_it_returns(goals: Weft) -> None:
    assert goals("run", "goals.py", "deliver", "order_id=17", "rate=0.5", "--id", "d").json() == {"ship": "sent 2+1.0"}
    assert '→ {\n    "ship": "sent 2+1.0"\n  }\n' in goals("show", "d").out


@pytest.mark.parametrize(("goal", "expected"), [("invoice", "2+1.0"), ("ship", "sent 2+1.0")])
def test_a_frozen_plan_is_run_from_the_store_and_prints_the_same(goals: Weft, goal: str, expected: str) -> None:
    words = ["--given", "order_id", "--given", "rate", "--app", "goals.py", "--freeze", "frozen"]
    assert goals("plan", goal, *words).code == 0

    assert goals("run", "goals.py", "frozen", "order_id=17", "rate=0.5").json() == {goal: expected}


def test_what_neither_the_app_nor_the_store_has_is_unknown(goals: Weft) -> None:
    said = goals("run", "goals.py", "bil")

    assert said.code == 2
    assert 'No workflow "bil" in goals.py. Did you mean "bill"?' in said.err


@pytest.mark.parametrize("workflow", ["echo", "code"])
def test_words_are_read_by_the_declared_type_in_every_style(goals: Weft, workflow: str) -> None:
    said = goals("run", "goals.py", workflow, "text=17", "number=17", 'tags=["17"]', "free=17")

    assert said.json() == {"all": {"text": "17", "number": 17, "tags": ["17"], "free": 17}}


PATCH = """
given: {tax: 3.5}
reason: the rate is not known
"""


def test_a_failed_goal_run_is_patched_from_a_file_and_retried(goals: Weft, folder: Path) -> None:
    broken = APP.replace("return total * rate", 'raise weft.Critical("no rate")')
    (folder / "goals.py").write_text(broken)
    (folder / "patch.yaml").write_text(PATCH)
    assert goals("run", "goals.py", "bill", "order_id=17", "rate=0.5", "--id", "b").code != 0

    planned = goals("patch", "b", "patch.yaml", "--dry-run")
    assert "b would be patched" in planned.out
    assert "gives tax (3.5)" in planned.out
    applied = goals("patch", "b", "patch.yaml", "--json").json()
    assert isinstance(applied, dict)
    assert applied["applied"]
    told = goals("show", "b", "--versions").out
    assert "the rate is not known" in told
    assert "+ /given/tax  3.5" in told
    assert goals("retry", "b").code == 0
    assert goals("run", "goals.py", "bill", "order_id=17", "rate=0.5", "--id", "b").json() == {"invoice": "2+3.5"}
