"""Budgets that a client gives with a start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import weft
from weft.core.budget_text import budget_document, read_budget

BUDGET = weft.Budget(
    tokens=9, money="2.50 USD", calls=3, tools=2, time="90s", per_tool={"look": 1}, warn=0.7, of=["role:x"]
)


def test_a_budget_is_the_same_after_a_journey_as_a_mapping() -> None:
    assert read_budget(budget_document(BUDGET.limits)) == BUDGET.limits


def test_a_client_starts_a_run_with_a_budget(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    app = weft.App(url)

    @app.step
    async def think() -> str:
        weft.task().spend(tokens=6)
        return "thought"

    @app.workflow
    async def ponder(ctx: weft.Context) -> list[str]:
        return [await think(), await think()]

    async def go() -> None:
        async with app, weft.Client(url) as client:
            handle = await client.start("ponder", {}, budget=weft.Budget(tokens=10))
            await handle.result()

    with pytest.raises(weft.RunFailed, match=r"the budget of .*, 10 tokens, has 4 tokens left"):
        asyncio.run(go())
