"""Asynchronous HTTP steps, answered by webhook: a real far side is called by the engine and answers the server."""

from __future__ import annotations

import base64
import http.server
import threading
import time
from collections.abc import Iterator
from queue import Queue
from typing import Any

import msgspec
import pytest

import weft
from tests.server.kit import Answer, Server, covers, serving
from weft.steps.http.webhooks import Receipt, webhooks_here
from weft.tokens import sign_body

WAIT = 10


class FarSide:
    """Accepts every call, and leaves the answering to the test."""

    def __init__(self) -> None:
        self.calls: Queue[dict[str, Any]] = Queue()
        calls = self.calls

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                call = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))
                # A step is told in its metadata where to answer, the node of a graph in its headers.
                told = {name: self.headers[f"weft-{name.replace('_', '-')}"] for name in ("webhook_url", "webhook_key")}
                calls.put({"metadata": told, **call})
                self.send_response(202)
                self.end_headers()

            do_PUT = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/render"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def far() -> Iterator[FarSide]:
    side = FarSide()
    yield side
    side.close()


@pytest.fixture
def server(far: FarSide, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.1")
    monkeypatch.setenv("WEFT_WEBHOOK_URL", "https://weft.example/api/v1/webhooks")
    monkeypatch.setenv("WEFT_WEBHOOK_SECRET", "a secret of sixteen bytes")
    app = weft.App("memory://")
    app.steps(
        {
            "weft": "steps/1",
            "steps": {
                "render": {
                    "http": {"url": far.url, "answer": "later"},
                    "needs": {"video": "string"},
                    "gives": {"link": "string"},
                },
                "print": {
                    "http": {"url": far.url, "method": "PUT", "answer": "later", "body": "bare", "webhook": "url"},
                    "needs": {"video": "string"},
                    "gives": {"page": "string"},
                },
            },
        }
    )
    app.goal("rendered", "render")
    app.goal("printed", "print")
    node = {"url": far.url, "method": "POST", "body": {"video": "${input.video}"}, "answer": "later"}
    app.graph(
        {
            "name": "drawn",
            "nodes": {
                "render": {"http": node, "save": {"state.link": "${output.link}"}, "catch": "sorry"},
                "sorry": {"pass": True, "save": {"state.link": "${error.message}"}},
            },
            "output": {"link": "${state.link}"},
        }
    )
    app.graph(
        {
            "name": "named",
            "input": {"video": "string"},
            "nodes": {"draw": {"step": "render", "save": {"state.link": "${output.link}"}}},
            "output": {"link": "${state.link}"},
        }
    )
    with serving(app) as running:
        yield running


def answer(server: Server, call: dict[str, Any], body: bytes, *, key: str = "", age_s: int = 0) -> Answer:
    metadata = call["metadata"]
    path = metadata["webhook_url"].removeprefix("https://weft.example")
    signature = sign_body(key or metadata["webhook_key"], body, now_s=int(time.time()) - age_s)
    headers = {"content-type": "application/json", "weft-signature": signature}
    return server.ask("POST", path, raw=body, **headers)


@covers("takeWebhook")
def test_a_signed_answer_ends_the_work_and_the_second_one_changes_nothing(server: Server, far: FarSide) -> None:
    run = server.start("rendered", video="v-1")
    call = far.calls.get(timeout=WAIT)
    assert call["arguments"] == {"video": "v-1"}

    first = answer(server, call, b'{"success": true, "outputs": {"link": "https://cdn.example/1"}}')
    assert (first.status, first.json) == (200, {})
    assert server.result(run)["output"]["result"]["link"] == "https://cdn.example/1"

    again = answer(server, call, b'{"link": "https://cdn.example/other"}')
    assert (again.status, again.json) == (200, {})
    assert server.result(run)["output"]["result"]["link"] == "https://cdn.example/1"


def test_the_far_side_may_say_that_it_failed(server: Server, far: FarSide) -> None:
    run = server.start("rendered", video="v-2")
    assert answer(server, far.calls.get(timeout=WAIT), b'{"success": false, "error": "no such video"}').status == 200

    assert "no such video" in server.result(run)["failure"]["message"]


@pytest.mark.parametrize("wrong", [{"key": "0" * 64}, {"age_s": 3_600}, {"age_s": -3_600}], ids=["key", "old", "early"])
def test_what_is_not_signed_for_this_call_now_is_refused_and_writes_nothing(
    server: Server, far: FarSide, wrong: dict[str, Any]
) -> None:
    run = server.start("rendered", video="v-3")
    call = far.calls.get(timeout=WAIT)
    before = server.until(run, "work_accepted")

    refused = answer(server, call, b'{"link": "https://evil.example"}', **wrong)

    assert (refused.status, refused.code) == (403, "access.not_allowed")
    assert server.get(f"/api/v1/runs/{run}/events").json["events"][-1]["seq"] == before
    assert answer(server, call, b'{"link": "https://cdn.example/3"}').status == 200
    assert server.result(run)["status"] == "completed"


@pytest.mark.parametrize("body", [b'{"link": ', b"", b"[1]", b'"text"', b'{"success": true, "outputs": 3}', b"\xff"])
def test_a_signed_body_that_is_no_answer_is_refused_and_the_item_stays_open(
    server: Server, far: FarSide, body: bytes
) -> None:
    run = server.start("rendered", video="v-5")
    call = far.calls.get(timeout=WAIT)
    before = server.until(run, "work_accepted")

    refused = answer(server, call, body)

    if body:  # nothing at all is an answer without outputs
        assert (refused.status, refused.code) == (400, "request.malformed")
        assert server.get(f"/api/v1/runs/{run}/events").json["events"][-1]["seq"] == before
        assert answer(server, call, b'{"link": "https://cdn.example/5"}').status == 200
    assert server.result(run)["status"] == "completed"


def test_a_service_that_cannot_sign_answers_with_the_key_in_its_address(server: Server, far: FarSide) -> None:
    run = server.start("printed", video="v-9")
    call = far.calls.get(timeout=WAIT)
    assert call["video"] == "v-9"  # the arguments alone
    path = call["metadata"]["webhook_url"].removeprefix("https://weft.example")
    kind = {"content-type": "application/json"}

    bare, _, key = path.partition("?key=")
    for wrong in (bare, f"{bare}?key={'0' * 64}", f"{bare}?key=", f"{bare}?key=%C3%A9", f"{bare}x?key={key}"):
        assert server.ask("POST", wrong, raw=b'{"page": "evil"}', **kind).status == 403
    assert server.ask("POST", path, raw=b'{"page": "p-9", "success": true}', **kind).status == 200
    assert server.result(run)["output"]["result"] == {"page": "p-9"}


def test_the_key_in_an_address_does_not_answer_for_a_step_that_wants_a_signature(server: Server, far: FarSide) -> None:
    server.start("rendered", video="v-10")
    metadata = far.calls.get(timeout=WAIT)["metadata"]
    path = metadata["webhook_url"].removeprefix("https://weft.example")

    assert server.ask("POST", f"{path}?key={metadata['webhook_key']}", raw=b'{"link": "b"}').status == 403


@pytest.mark.parametrize("workflow", ["rendered", "drawn"])
def test_an_answer_to_an_earlier_run_of_the_same_id_is_refused(server: Server, far: FarSide, workflow: str) -> None:
    """An id is free again once its run was deleted; who was called by the first run knows nothing of that."""
    run = server.start(workflow, "again", video="v-6")
    call = far.calls.get(timeout=WAIT)
    webhooks = webhooks_here()
    assert webhooks is not None
    token = call["metadata"]["webhook_url"].rpartition("/")[2]
    receipt = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=Receipt)
    earlier = webhooks.token(msgspec.structs.replace(receipt, uid=receipt.uid[::-1]))
    metadata = {"webhook_url": webhooks.url(earlier), "webhook_key": webhooks.key(earlier)}

    refused = answer(server, {"metadata": metadata}, b'{"link": "https://cdn.example/old"}')

    assert (refused.status, refused.code) == (403, "access.not_allowed")
    assert answer(server, call, b'{"link": "https://cdn.example/new"}').status == 200
    assert "https://cdn.example/new" in str(server.result(run)["output"])


def test_a_signature_over_other_bytes_or_none_is_refused(server: Server, far: FarSide) -> None:
    server.start("rendered", video="v-4")
    metadata = far.calls.get(timeout=WAIT)["metadata"]
    path = metadata["webhook_url"].removeprefix("https://weft.example")
    signature = sign_body(metadata["webhook_key"], b'{"link": "a"}', now_s=int(time.time()))

    assert server.ask("POST", path, raw=b'{"link": "b"}', **{"weft-signature": signature}).status == 403
    assert server.ask("POST", path, raw=b'{"link": "a"}').status == 403
    assert server.ask("POST", path + "x", raw=b'{"link": "a"}', **{"weft-signature": signature}).status == 403


def test_a_server_that_expects_none_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_WEBHOOK_URL", raising=False)
    monkeypatch.delenv("WEFT_WEBHOOK_SECRET", raising=False)
    with serving(weft.App("memory://")) as running:
        refused = running.post("/api/v1/webhooks/abc", {"link": "a"})

    assert refused.status == 404
    assert "WEFT_WEBHOOK_URL" in refused.json["hint"]


def test_the_node_of_a_graph_is_answered_once(server: Server, far: FarSide) -> None:
    run = server.start("drawn", video="v-6")
    call = far.calls.get(timeout=WAIT)
    assert call["video"] == "v-6"
    server.until(run, "work_accepted")

    for link in ("https://cdn.example/6", "https://cdn.example/other"):
        told = answer(server, call, msgspec.json.encode({"success": True, "outputs": {"link": link}}))
        assert (told.status, told.json) == (200, {})
        assert server.result(run)["output"] == {"link": "https://cdn.example/6"}


def test_what_the_far_side_of_a_node_fails_with_goes_to_its_handler(server: Server, far: FarSide) -> None:
    run = server.start("drawn", video="v-7")
    assert answer(server, far.calls.get(timeout=WAIT), b'{"success": false, "error": "no such video"}').status == 200

    assert "no such video" in server.result(run)["output"]["link"]


def test_a_node_is_answered_only_by_who_was_called(server: Server, far: FarSide) -> None:
    run = server.start("drawn", video="v-8")
    call = far.calls.get(timeout=WAIT)
    before = server.until(run, "work_accepted")

    assert answer(server, call, b'{"link": "https://evil.example"}', key="0" * 64).status == 403
    assert server.get(f"/api/v1/runs/{run}/events").json["events"][-1]["seq"] == before
    assert answer(server, call, b'{"link": "https://cdn.example/8"}').status == 200
    assert server.result(run)["output"] == {"link": "https://cdn.example/8"}


def test_a_node_that_names_a_step_is_answered_later_too(server: Server, far: FarSide) -> None:
    run = server.start("named", video="v-11")
    call = far.calls.get(timeout=WAIT)
    assert call["arguments"] == {"video": "v-11"}
    server.until(run, "work_accepted")

    assert answer(server, call, b'{"link": "https://cdn.example/11"}').status == 200
    assert server.result(run)["output"] == {"link": "https://cdn.example/11"}
