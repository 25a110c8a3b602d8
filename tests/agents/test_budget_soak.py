"""A sample of the random worlds of the ledger, on every store; ``make soak`` plays 20,000 on each."""

import asyncio
from pathlib import Path

import pytest

from tests import servers
from tests.agents.budget_soak import soak
from tests.scale import MARKS, scaled

pytestmark = MARKS


def test_no_budget_is_exceeded_in_memory() -> None:
    seen = asyncio.run(soak("memory://", range(scaled(60, 2_000))))

    assert seen["Granted"] > 100
    assert seen["Short"] > 100
    assert seen["stale_epoch"] > 50


def test_no_budget_is_exceeded_in_sqlite(tmp_path: Path) -> None:
    assert asyncio.run(soak(f"sqlite:///{tmp_path}/weft.db", range(scaled(15, 200))))["Granted"] > 20


@pytest.mark.proof
def test_no_budget_is_exceeded_in_postgres() -> None:
    assert asyncio.run(soak(servers.database("budgets"), range(40)))["Granted"] > 20
