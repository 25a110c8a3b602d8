"""Steps of the store and plans, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, covers, quoted, serving


def document(when: str = "country != ''") -> dict[str, Any]:
    return {
        "weft": "steps/1",
        "steps": {
            "price": {
                "script": {"ale": "{:total (* amount 2)}"},
                "needs": {"amount": "number", "country": "string"},
                "gives": {"total": "number"},
                "when": when,
            }
        },
    }


@pytest.fixture
def server() -> Iterator[Server]:
    app = weft.App("memory://")

    @app.step(gives="amount")
    async def measure(order_id: str) -> float:
        return float(len(order_id))

    with serving(app) as running:
        yield running


@covers("registerSteps", "listSteps", "getStep", "updateSteps", "unregisterStep", "plan")
def test_a_step_is_registered_planned_with_replaced_and_taken_out(server: Server) -> None:
    assert server.post(f"{API}/steps", {"document": document()}).json == {"steps": ["price"]}
    assert server.post(f"{API}/steps", {"document": document()}).json == {"steps": []}

    listed = server.get(f"{API}/steps?limit=1").json
    rest = server.get(f"{API}/steps?cursor={quoted(listed['cursor'])}").json
    assert [step["id"] for step in listed["steps"] + rest["steps"]] == ["measure", "price"]
    shown = server.get(f"{API}/steps/price").json
    assert (shown["stored"], sorted(shown["definition"]["needs"])) == (True, ["amount", "country"])
    assert server.get(f"{API}/steps/measure").json["stored"] is False

    plan = server.post(f"{API}/plan", {"goals": ["price"], "given": ["order_id"]}).json
    assert plan["steps"] == ["measure", "price"]
    assert plan["missing"] == {"country": ["price"]}

    assert server.post(f"{API}/steps", {"document": document("true")}).code == "usage.name_taken"
    assert server.ask("PUT", f"{API}/steps", {"document": document("true")}).json == {"steps": ["price"]}
    assert server.ask("DELETE", f"{API}/steps/price").json == {"steps": ["price"]}
    assert server.get(f"{API}/steps/price").status == 404
    assert server.post(f"{API}/plan", {"goals": ["price"]}).code == "usage.unknown_step"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"weft": "steps/1"},
        {"weft": "steps/1", "steps": {"x": {}}},
        {"weft": "steps/1", "steps": {"x": {"script": ")"}}},
    ],
)
def test_a_document_that_is_wrong_is_refused_with_all_that_is_wrong(server: Server, wrong: dict[str, Any]) -> None:
    answer = server.post(f"{API}/steps", {"document": wrong})

    assert answer.status == 422
    assert server.get(f"{API}/steps").json["steps"][0]["id"] == "measure"


def test_what_is_not_there_is_neither_replaced_nor_taken_out(server: Server) -> None:
    assert server.ask("PUT", f"{API}/steps", {"document": document()}).status == 404
    assert server.ask("DELETE", f"{API}/steps/price").status == 404
    assert server.post(f"{API}/plan", {"goals": []}).status == 422
