"""Messages, cancel, pause, resume, retry, questions and dead letters, over HTTP."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.server.kit import API, Server, covers, quoted


def message(server: Server, run: str, body: Any, key: str | None = None, name: str = "quote") -> Any:
    headers = {"Idempotency_Key": key} if key is not None else {}
    return server.post(f"{API}/runs/{run}/messages", {"name": name, "body": body}, **headers)


@covers("sendMessage")
def test_a_message_reaches_its_run(server: Server) -> None:
    server.start("order", "m-1", order_id="o-1")

    assert message(server, "m-1", 42).status == 200
    assert server.result("m-1")["output"] == "o-1 for 42"


def test_a_message_that_came_before_the_wait_is_kept(server: Server) -> None:
    """Accepted is durable: whether the run waits for it yet makes no difference."""
    server.post(f"{API}/runs", {"workflow": "order", "id": "m-2", "input": {"order_id": "o-2"}, "delay": 0.2})

    assert message(server, "m-2", 7).status == 200
    assert server.result("m-2")["output"] == "o-2 for 7"


def test_the_same_key_twice_is_one_message_and_another_body_is_refused(server: Server) -> None:
    server.start("order", "m-3", order_id="o-3")
    server.until("m-3", "message_awaited")
    server.post(f"{API}/runs/m-3/pause")

    assert message(server, "m-3", 1, "key").status == 200
    assert message(server, "m-3", 1, "key").status == 200
    assert message(server, "m-3", 2, "key").code == "run.key_reused"

    events = server.get(f"{API}/runs/m-3/events").json["events"]
    assert [event["kind"] for event in events].count("message_received") == 1


def test_a_run_that_is_over_takes_no_message(server: Server) -> None:
    server.result(server.start("hello", "m-4", name="a"))

    answer = message(server, "m-4", 1)

    assert answer.status == 409
    assert answer.code == "run.finished"


@pytest.mark.parametrize(
    "body", [{}, {"name": ""}, {"name": "a/b"}, {"name": "a", "body": "\x00"}, {"name": "a", "other": 1}, "text"]
)
def test_a_message_that_is_wrong_is_refused(server: Server, body: object) -> None:
    server.start("order", "m-5", order_id="o-5")

    assert server.post(f"{API}/runs/m-5/messages", body).status == 422


@covers("cancelRun")
def test_a_run_is_cancelled_with_a_reason(server: Server) -> None:
    server.start("order", "c-1", order_id="o")

    assert server.post(f"{API}/runs/c-1/cancel", {"reason": "changed my mind"}).status == 200
    result = server.result("c-1")
    assert (result["status"], result["reason"]) == ("cancelled", "changed my mind")
    assert server.post(f"{API}/runs/c-1/cancel").code == "run.finished"


def test_a_run_that_swallows_cancellation_is_ended_by_force(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.start("stubborn", "c-2")
    server.until("c-2", "message_awaited")

    assert server.post(f"{API}/runs/c-2/cancel").json == {"id": "c-2", "status": "cancelling"}
    monkeypatch.setattr("weft.observe.sentences.CANCELLING_MS_MAX", 0)
    told = server.post(f"{API}/runs/c-2/cancel").json
    assert told["status"] == "cancelling"
    assert told["hint"].endswith("weft cancel c-2 --force")
    assert server.get(f"{API}/runs/c-2/explain").json["hint"].endswith("weft cancel c-2 --force")
    assert server.post(f"{API}/runs/c-2/cancel", {"force": True}).status == 200
    assert server.result("c-2")["status"] == "cancelled"


@covers("pauseRun", "resumeRun")
def test_a_paused_run_does_nothing_until_it_is_resumed(server: Server) -> None:
    server.start("order", "p-1", order_id="o")
    server.until("p-1", "message_awaited")

    assert server.post(f"{API}/runs/p-1/pause").json == {"id": "p-1", "status": "paused"}
    message(server, "p-1", 5)
    assert server.get(f"{API}/runs/p-1/result?wait=0.05").json["status"] == "paused"
    assert server.post(f"{API}/runs/p-1/resume").status == 200
    assert server.result("p-1")["output"] == "o for 5"


@covers("retryRun")
def test_a_failed_run_is_tried_again_once_per_key(server: Server) -> None:
    assert server.result(server.start("fragile", "r-1", n=1))["status"] == "failed"

    assert server.post(f"{API}/runs/r-1/retry", Idempotency_Key="again").status == 200
    assert server.result("r-1")["output"] == 1
    assert server.post(f"{API}/runs/r-1/retry", Idempotency_Key="again").status == 200
    assert server.post(f"{API}/runs/r-1/retry").status == 409
    assert server.post(f"{API}/runs/r-1/retry", {"place": "x"}, Idempotency_Key="again").code == "run.key_reused"


@pytest.mark.parametrize("what", ["cancel", "pause", "resume", "retry"])
def test_nobody_is_not_steered(server: Server, what: str) -> None:
    assert server.post(f"{API}/runs/nobody/{what}").code == "run.not_found"


# --- questions ---------------------------------------------------------------------------------------------------


def open_questions(server: Server) -> list[Any]:
    """All pages of the listing."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = server.get(f"{API}/approvals?limit=2{cursor}").json
        found += page["approvals"]
        if page["cursor"] is None:
            return found
        cursor = f"&cursor={quoted(page['cursor'])}"


@covers("listApprovals", "decide")
def test_a_question_is_listed_and_answered(server: Server) -> None:
    for n in range(5):
        server.start("ship", f"ship-{n}", order_id=f"o-{n}")
        server.until(f"ship-{n}", "ask_opened")

    questions = {question["id"]: question for question in open_questions(server)}
    assert {f"ship-{n}:carrier" for n in range(5)} <= set(questions)
    question = questions["ship-3:carrier"]
    assert (question["title"], question["about"], question["place"]) == ("Ship o-3?", {"order": "o-3"}, "carrier")
    assert "carrier" in str(question["form"])

    wrong = server.post(f"{API}/approvals/ship-3:carrier/decision", {"approved": True, "form": {"carrier": 1}})
    assert wrong.status == 422
    given = {"approved": True, "by": "anna", "reason": "cheap", "form": {"carrier": "dhl"}}
    assert server.post(f"{API}/approvals/ship-3:carrier/decision", given).status == 200
    assert server.result("ship-3")["output"] == {"approved": True, "by": ["anna"], "carrier": "dhl"}
    assert "ship-3:carrier" not in {question["id"] for question in open_questions(server)}


def test_a_question_is_decided_once_however_many_answer(server: Server) -> None:
    server.start("ship", "once", order_id="o")
    server.until("once", "ask_opened")

    def answer(n: int) -> Any:
        return server.post(f"{API}/approvals/once:carrier/decision", {"approved": False, "by": f"person {n}"})

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(answer, range(50)))

    assert [answer.status for answer in answers].count(200) == 1
    assert {answer.code for answer in answers if answer.status != 200} <= {"run.already_decided", "run.finished"}
    (winner,) = [n for n, answer in enumerate(answers) if answer.status == 200]
    assert server.result("once")["output"]["by"] == [f"person {winner}"]


@pytest.mark.parametrize("id", ["nobody:x", "nothing", ":", "once:", "once:nowhere"])
def test_a_question_that_is_not_there_is_not_found(server: Server, id: str) -> None:
    answer = server.post(f"{API}/approvals/{quoted(id)}/decision", {"approved": True})

    assert answer.status in (404, 409)


# --- dead letters ------------------------------------------------------------------------------------------------


@covers("listDeadLetters", "requeueDeadLetter", "discardDeadLetter")
def test_a_dead_letter_is_listed_and_worked_on_again_or_put_away(server: Server) -> None:
    for n in (11, 12, 13):
        assert server.result(server.start("unlucky", f"unlucky-{n}", n=n))["status"] == "failed"

    page = server.get(f"{API}/dlq?run=unlucky-&limit=2").json
    assert [letter["run"] for letter in page["letters"]] == ["unlucky-13", "unlucky-12"]
    rest = server.get(f"{API}/dlq?run=unlucky-&limit=2&cursor={quoted(page['cursor'])}").json
    (letter,) = rest["letters"]
    assert (letter["node"], letter["input"]) == ("break", {"n": 11})
    assert "broken 11" in letter["failure"]["message"]

    path = f"{API}/dlq/{quoted(letter['id'])}"
    assert server.post(f"{path}/requeue", Idempotency_Key="once").status == 200
    assert server.result("unlucky-11")["status"] == "completed"
    assert server.post(f"{path}/requeue", Idempotency_Key="once").status == 200

    other = page["letters"][0]["id"]
    assert server.post(f"{API}/dlq/{quoted(other)}/discard").status == 200
    assert server.get(f"{API}/dlq?run=unlucky-13").json["letters"] == []


@pytest.mark.parametrize("id", ["nobody:1", "unlucky", "unlucky-12:nothing"])
def test_a_dead_letter_that_is_not_there_is_refused(server: Server, id: str) -> None:
    assert server.post(f"{API}/dlq/{quoted(id)}/requeue").status in (404, 409)
