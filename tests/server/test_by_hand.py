"""Results set over HTTP."""

from __future__ import annotations

from tests.server.kit import API, Server, covers


@covers("setResult")
def test_the_result_of_a_question_is_set_once_per_key(server: Server) -> None:
    server.start("ship", "s-1", order_id="o")
    server.until("s-1", "ask_opened")
    place = server.get(f"{API}/approvals").json["approvals"][0]["place"]
    wrong = server.post(f"{API}/runs/s-1/set", {"place": place, "output": 5})
    assert (wrong.status, wrong.code) == (422, "value.wrong_type")
    body = {"place": place, "output": {"approved": True, "form": {"carrier": "dhl"}}, "reason": "by phone", "by": "ann"}
    assert server.post(f"{API}/runs/s-1/set", body, Idempotency_Key="k").status == 200
    assert server.result("s-1")["status"] == "completed"
    assert server.post(f"{API}/runs/s-1/set", body, Idempotency_Key="k").status == 200
    events = server.get(f"{API}/runs/s-1/events").json["events"]
    (noted,) = (event["data"] for event in events if event["kind"] == "result_set")
    assert (noted["by"], noted["reason"]) == ("ann", "by phone")


def test_what_is_not_there_is_not_set(server: Server) -> None:
    server.start("ship", "s-2", order_id="o")
    server.until("s-2", "ask_opened")
    assert server.post(f"{API}/runs/s-2/set", {"place": "nowhere"}).code == "run.not_found"
    both = server.post(f"{API}/runs/s-2/set", {"place": "x", "output": 1, "error": "y"})
    assert both.status in (400, 422)
