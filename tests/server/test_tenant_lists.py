"""Lists of one tenant's runs: what they wait for, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.keyring import Caller, caller
from tests.server.kit import API, covers, serving
from tests.server.shop import shop


@pytest.fixture(scope="module")
def callers() -> Iterator[dict[str, Caller]]:
    """Somebody of two tenants, each with two runs that ask, and an operator."""
    with serving(shop()) as running:
        found = {tenant: caller(running, "ann", "admin", tenant=tenant) for tenant in ("a", "b", "")}
        for tenant in ("a", "b"):
            for run in ("same", f"only-{tenant}"):
                new = {"workflow": "ship", "input": {"order_id": run}, "id": run}
                assert found[tenant].post(f"{API}/runs", new).status == 201
        yield found


@covers("getWaits")
def test_a_tenant_sees_what_its_own_runs_wait_for(callers: dict[str, Caller]) -> None:
    answer = callers["a"].get(f"{API}/waits?id=only-a&id=only-b&id=%40b%2Fsame")

    assert answer.status == 200, answer.raw
    assert [one["run"] for one in answer.json["waits"]] == ["only-a"]


@covers("countRuns")
def test_counts_are_of_ones_own_runs(callers: dict[str, Caller]) -> None:
    def counted(tenant: str, query: str) -> dict[str, int]:
        found = callers[tenant].get(f"{API}/counts?{query}").json["counts"]
        return {one["key"]: one["count"] for one in found}

    assert counted("a", "by=workflow&workflow=ship") == {"ship": 2}
    assert counted("", "by=workflow&workflow=ship") == {"ship": 4}
    assert counted("a", "by=status&prefix=only-b") == {}
    assert counted("a", "by=status&q=only") == {"running": 1}
