"""Steps of the store and plans, over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, covers, quoted, serving
from weft.goals import admission
from weft.goals.admission import admit_steps


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


# --- runs for goals ----------------------------------------------------------------------------------------------


@covers("startRun", "registerSteps")
def test_a_goal_is_started_by_naming_steps_that_were_registered_a_moment_ago(server: Server) -> None:
    assert server.post(f"{API}/runs", {"goals": ["price"], "input": {"order_id": "o-1"}}).status == 404
    server.post(f"{API}/steps", {"document": document()})

    given = {"order_id": "o-10", "country": "FR"}
    started = server.post(f"{API}/runs", {"goals": ["price"], "input": given, "id": "price-1"})

    assert (started.status, started.json) == (201, {"id": "price-1", "created": True})
    assert server.result("price-1")["output"]["result"] == {"total": 8}
    again = server.post(f"{API}/runs", {"goals": ["price"], "input": given, "id": "price-1"})
    assert (again.status, again.json["created"]) == (200, False)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "value.wrong_type"),
        ({"goals": []}, 422, "value.wrong_type"),
        ({"goals": ["measure"], "workflow": "measured"}, 422, "value.wrong_type"),
        ({"goals": ["measure"], "version": "1"}, 422, "value.wrong_type"),
        ({"goals": ["nobody"]}, 404, "usage.unknown_step"),
        ({"goals": ["measure"], "input": {}}, 422, "goal.missing"),
        ({"goals": ["measure"], "input": {"order_id": 3}}, 422, "value.wrong_type"),
    ],
)
def test_a_start_for_goals_that_cannot_be_is_refused(
    server: Server, body: dict[str, Any], status: int, code: str
) -> None:
    answer = server.post(f"{API}/runs", body)

    assert (answer.status, answer.code) == (status, code)
    assert server.get(f"{API}/runs").json["runs"] == []


@pytest.mark.parametrize(
    "other",
    [
        {"input": {"order_id": "o-1", "country": "FR"}},
        {"input": {}},
        {"input": {"order_id": "o-2"}},
        {"goals": ["weigh"]},
        {"goals": ["measure", "weigh"]},
    ],
    ids=["more", "less", "other", "other goal", "more goals"],
)
def test_two_starts_under_one_id_are_one_only_if_all_of_them_is_equal(server: Server, other: dict[str, Any]) -> None:
    more = {"weigh": {"script": {"ale": "1"}, "needs": {"order_id": {"optional": True}}, "gives": ["result"]}}
    server.post(f"{API}/steps", {"document": {"steps": more}})
    first = {"goals": ["measure"], "input": {"order_id": "o-1"}, "id": "m-1"}
    assert server.post(f"{API}/runs", first).status == 201

    answer = server.post(f"{API}/runs", {**first, **other})

    assert answer.status in (409, 422)
    assert answer.code in ("run.id_taken", "goal.missing")
    assert server.post(f"{API}/runs", first).status == 200


def test_a_named_goal_compares_all_that_is_given_too(server: Server) -> None:
    server.app.goal("measured", "measure")
    server.start("measured", id="n-1", order_id="o-1")

    body = {"workflow": "measured", "id": "n-1", "input": {"order_id": "o-1", "note": "x"}}
    assert server.post(f"{API}/runs", body).code == "run.id_taken"


def test_a_graph_names_a_step_that_was_registered_over_http(server: Server) -> None:
    graph = {
        "name": "doubling",
        "input": {"amount": "number"},
        "nodes": {
            "double": {
                "step": "twice",
                "with": {"amount": "${input.amount}"},
                "save": {"state.twice": "${output.twice}"},
            }
        },
        "output": {"twice": "${state.twice}"},
    }
    step = {
        "script": {"ale": "{:twice (* amount factor)}"},
        "needs": {"amount": "number", "factor": {"const": 2}},
        "gives": ["twice"],
    }
    server.app.graph(graph)
    body = {"workflow": "doubling", "input": {"amount": 4}}
    assert server.post(f"{API}/runs", body).code == "graph.unknown_step"

    server.post(f"{API}/steps", {"document": {"steps": {"twice": step}}})

    run = server.post(f"{API}/runs", body).json["id"]
    assert server.result(run)["output"] == {"twice": 8}


def test_a_graph_does_not_name_a_step_that_takes_a_plan(server: Server) -> None:
    server.post(f"{API}/steps", {"document": document()})
    server.app.graph({"name": "priced", "nodes": {"price": {"step": "price"}}})

    refused = server.post(f"{API}/runs", {"workflow": "priced"})

    assert refused.code == "graph.unknown_step"
    assert "Write goal: price" in str(refused.json)


def test_a_step_that_names_a_function_keeps_its_policies() -> None:
    app = weft.App("memory://")

    @app.step(effect="irreversible", retries=0)
    async def charge(order_id: str) -> dict[str, str]:
        return {"receipt": order_id}

    with serving(app) as server:
        steps = {"charge_it": {"step": "charge", "needs": {"order_id": "string"}, "gives": ["receipt"]}}
        server.post(f"{API}/steps", {"document": {"steps": steps}})
        policy = server.get(f"{API}/steps/charge_it").json["definition"]["policy"]

    assert (policy["effect"], policy["attempts_max"]) == ("irreversible", 1)


def test_thousands_of_steps_of_one_fact_are_checked_off_the_loop(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are answered meanwhile, and the answer has them all."""
    threads: list[str] = []

    def noting(*given: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return admit_steps(*given, **options)

    monkeypatch.setattr(admission, "admit_steps", noting)
    steps = {f"s{number}": {"step": "do", "gives": {"fact": "string"}} for number in range(2_000)}

    answer = server.post(f"{API}/steps", {"document": {"weft": "steps/1", "steps": steps}})

    assert answer.status in (200, 201)
    assert len(answer.json["steps"]) == 2_000
    assert threads
    assert "server" not in threads
    plan = server.post(f"{API}/plan", {"goals": ["s7"]}).json
    assert plan["steps"] == ["s7"]
