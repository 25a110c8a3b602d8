"""What runs spend and their budgets, over HTTP."""

from __future__ import annotations

from tests.server.kit import API, Server, covers


@covers("getUsage", "raiseBudget")
def test_a_budget_is_shown_and_raised_once_per_key(server: Server) -> None:
    body = {"workflow": "ship", "id": "b-1", "input": {"order_id": "o"}, "budget": {"tokens": 100, "money": "2 USD"}}
    assert server.post(f"{API}/runs", body).status == 201
    server.until("b-1", "ask_opened")
    raised = {"add": {"money": "0.50", "tokens": 10}, "reason": "a long one", "by": "ann"}
    for _ in range(2):
        assert server.post(f"{API}/runs/b-1/budget", raised, Idempotency_Key="k").status == 200

    usage = server.get(f"{API}/runs/b-1/usage").json

    assert usage["has_budget"] is True
    assert {unit["unit"]: unit["limit"] for unit in usage["units"]} == {"money:USD": 2_500_000, "tokens": 110}
    assert usage["units"][0]["text"] == "0.00 USD spent, 2.50 USD of 2.50 USD left"
    events = server.get(f"{API}/runs/b-1/events").json["events"]
    (noted,) = (event["data"] for event in events if event["kind"] == "budget_raised")
    assert (noted["by"], noted["reason"]) == ("ann", "a long one")


def test_what_cannot_be_raised_is_refused(server: Server) -> None:
    server.start("ship", "b-2", order_id="o")
    server.until("b-2", "ask_opened")

    assert server.post(f"{API}/runs/b-2/budget", {"add": {"tokens": 5}}).status == 409
    assert server.post(f"{API}/runs/b-2/budget", {"add": {"token": 5}}).code == "value.bad_policy"
    assert server.post(f"{API}/runs/b-2/budget", {"add": {}}).code == "value.bad_policy"
    assert server.get(f"{API}/runs/b-2/usage").json["units"] == []


def test_a_budget_that_cannot_be_is_refused_at_the_start(server: Server) -> None:
    for budget in ({}, {"tokens": -1}, {"money": "2"}, {"tokns": 5}, {"warn": 0.5}):
        body = {"workflow": "ship", "input": {"order_id": "o"}, "budget": budget}
        assert server.post(f"{API}/runs", body).code == "value.bad_policy", budget
