"""A goal's step by HTTP: arguments and metadata in; outputs, or ``{success, outputs, error}``, out; now or later."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from tests.steps.http_kit import FixedClock, answering, calling, go, serving, task
from weft.errors import BadValue, NotAllowed, UsageError
from weft.steps.http.compensation import Compensation
from weft.steps.http.failures import AnsweredLater, HttpFailed, HttpUnavailable, is_final
from weft.steps.http.health import health
from weft.steps.http.step import HttpCall, HttpStep
from weft.steps.http.urls import fill_url, url_names
from weft.steps.http.webhooks import Receipt, Webhooks
from weft.steps.task import StepBody
from weft.tokens import sign_body

NOWHERE: Any = None
WEBHOOKS = Webhooks("https://weft.example/api/v1/webhook/", "a secret of enough bytes")


async def perform(
    handler: Any, arguments: dict[str, Any], *, path: str = "/price", webhooks: Webhooks | None = WEBHOOKS, **call: Any
) -> Any:
    async with serving(handler) as base, calling() as client:
        made = HttpCall(url=base + path, **call)
        body: StepBody = HttpStep("price", made, client, FixedClock(), webhooks=webhooks)
        with task():
            return json.loads(await body.perform(json.dumps(arguments).encode(), NOWHERE))


def noting(seen: list[dict[str, Any]], **answer: Any) -> Any:
    async def note(request: web.Request) -> web.StreamResponse:
        text = await request.text()
        seen.append(
            {
                "method": request.method,
                "path": str(request.rel_url),
                "json": json.loads(text) if text else None,
                "headers": {name.lower(): value for name, value in request.headers.items()},
            }
        )
        return web.json_response({"total": 5}, **answer)

    return note


def test_arguments_and_metadata_go_in_and_outputs_come_out() -> None:
    seen: list[dict[str, Any]] = []

    outputs = go(perform(noting(seen), {"order_id": "o-1", "lines": [1, 2]}))

    assert outputs == {"total": 5}
    assert seen[0]["method"] == "POST"
    assert seen[0]["json"] == {
        "arguments": {"order_id": "o-1", "lines": [1, 2]},
        "metadata": {"flow_id": "order-1", "step_id": "price", "receipt_token": "u1/price", "attempt": 2},
    }
    assert seen[0]["headers"]["idempotency-key"] == "u1/price"
    assert seen[0]["headers"]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        (b'{"total": 5, "currency": "EUR"}', {"total": 5, "currency": "EUR"}),
        (b'{"success": true, "outputs": {"total": 5}}', {"total": 5}),
        (b'{"success": true}', {}),
        (b'{"success": true, "outputs": null, "error": null}', {}),
        (b"", {}),
        (b" \n", {}),
        (b'{"success": true, "total": 5}', {"success": True, "total": 5}),
        (b'{"success": "yes", "outputs": 1}', {"success": "yes", "outputs": 1}),
        (b'{"outputs": {"total": 5}}', {"outputs": {"total": 5}}),
    ],
)
def test_both_shapes_of_an_answer_are_read(body: bytes, outputs: dict[str, Any]) -> None:
    kind = {"Content-Type": "application/json"}
    assert go(perform(answering(body=body, headers=kind), {})) == outputs


def test_no_content_is_no_outputs() -> None:
    assert go(perform(answering(status=204), {})) == {}


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("application/json", b'{"success": false, "error": "out of stock"}', "failed: out of stock"),
        ("application/json", b'{"success": false, "error": {"message": "no"}}', "failed: no"),
        ("application/json", b'{"success": false}', "gave no reason"),
        ("application/problem+json", b'{"detail": "no such order"}', "failed: no such order"),
        ("application/json", b"[1]", "answered with a list, but outputs must be an object"),
        ("application/json", b"5", "a number"),
        ("application/json", b"null", "null"),
        ("application/json", b'{"success": true, "outputs": [1]}', "a list as outputs"),
        ("text/html", b"<html>Welcome</html>", "not JSON"),
        ("application/json", b'{"total": ', "not JSON"),
    ],
)
def test_a_failure_or_garbage_is_final(kind: str, body: bytes, told: str) -> None:
    with pytest.raises(HttpFailed, match=told) as failed:
        go(perform(answering(body=body, headers={"Content-Type": kind}), {}))

    assert is_final(failed.value)


def test_json_under_a_wrong_type_is_read_all_the_same() -> None:
    assert go(perform(answering(text='{"total": 5}', content_type="text/plain"), {})) == {"total": 5}


@pytest.mark.parametrize(("status", "final"), [(400, True), (404, True), (429, False), (503, False), (304, True)])
def test_a_status_decides_whether_it_is_tried_again(status: int, final: bool) -> None:
    with pytest.raises(HttpFailed) as failed:
        go(perform(answering(status=status, headers={"Retry-After": "4"}), {}))

    assert is_final(failed.value) is final
    if isinstance(failed.value, HttpUnavailable):
        assert failed.value.retry_after_ms == 4_000


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods_have_a_body_too(method: str) -> None:
    seen: list[dict[str, Any]] = []
    go(perform(noting(seen), {"a": 1}, method=method))

    assert seen[0]["method"] == method
    assert seen[0]["json"]["arguments"] == {"a": 1}


def test_a_get_has_its_arguments_in_the_address() -> None:
    seen: list[dict[str, Any]] = []
    arguments = {"order_id": "a/b", "n": 2, "flag": True, "lines": [1, {"x": "y"}], "none": None}
    go(perform(noting(seen), arguments, path="/price/{order_id}?v=1", method="GET"))

    assert seen[0]["json"] is None
    assert seen[0]["path"] == "/price/a%2Fb?v=1&n=2&flag=true&lines=%5B1,%7B%22x%22:%22y%22%7D%5D"
    assert "content-type" not in seen[0]["headers"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("o-1", "/price/o-1/x"),
        ("a/b", "/price/a%2Fb/x"),
        ("a?b#c", "/price/a%3Fb%23c/x"),
        ("ü x", "/price/%C3%BC%20x/x"),
        ("../../admin", "/price/..%2F..%2Fadmin/x"),
        ("%2e%2e", "/price/%252e%252e/x"),
        (7, "/price/7/x"),
        (True, "/price/true/x"),
        ("a\r\nb", "/price/a%0D%0Ab/x"),
        ("{x}", "/price/%7Bx%7D/x"),
        ("@evil.example", "/price/@evil.example/x"),
        ("...", "/price/.../x"),
    ],
)
def test_an_argument_fills_its_place_and_nothing_more(value: Any, path: str) -> None:
    """Seen by the server, after everything between."""
    seen: list[dict[str, Any]] = []
    go(perform(noting(seen), {"id": value}, path="/price/{id}/x"))

    assert seen[0]["path"] == path


@pytest.mark.parametrize("value", [None, "", ".", ".."])
def test_an_argument_that_would_name_something_else_is_refused(value: Any) -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(BadValue) as refused:
        go(perform(noting(seen), {"id": value}, path="/price/{id}"))

    assert is_final(refused.value)
    assert seen == []


def test_dots_from_two_arguments_do_not_climb_up() -> None:
    with pytest.raises(BadValue):
        fill_url("https://x/a/{p}{q}/b", {"p": ".", "q": "."})


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(BadValue, match="needs order_id"):
        fill_url("https://x/{order_id}", {})


def test_places_in_a_query_are_filled_and_may_be_empty() -> None:
    filled = fill_url("https://x/a?b={b}&c={c}", {"b": "x&y=z", "c": ""})

    assert filled == "https://x/a?b=x%26y%3Dz&c="
    assert url_names("https://x/{a}/{b}?c={a}") == ["a", "b"]


@pytest.mark.parametrize(
    "url",
    [
        "https://{host}/x",
        "https://x.{zone}/",
        "https://x:{port}/",
        "{url}",
        "https://x/{a",
        "https://x/a}",
        "https://x/{}",
        "ftp://x/",
        "https://u:p@x/",
        "x/y",
        "https://x:99999999/",
        "https://[::1/",
        "https://x/{a b}",
    ],
)
def test_an_address_with_a_place_where_none_may_be_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadValue):
        HttpCall(url=url)


@pytest.mark.parametrize(
    "call",
    [
        {"method": "BREW"},
        {"method": "HEAD"},
        {"health": "https://x/{a}"},
        {"health": "x"},
    ],
)
def test_a_call_that_cannot_work_is_refused_at_once(call: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        HttpCall(url="https://x/", **call)


def test_an_answer_that_comes_later_is_asked_for_with_an_address_and_a_key() -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(AnsweredLater) as accepted:
        go(perform(noting(seen, status=202), {"a": 1}, answer="later"))

    metadata = seen[0]["json"]["metadata"]
    token = accepted.value.token
    assert metadata["webhook_url"] == f"https://weft.example/api/v1/webhook/{token}"
    body = b'{"total": 5}'
    receipt = WEBHOOKS.open(token, body, sign_body(metadata["webhook_key"], body, now_s=1000), now_s=1000)
    assert receipt == Receipt("order-1", "u1", 0, "price", 2)
    assert not isinstance(accepted.value, HttpFailed)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_any_method_may_be_answered_later_and_is_told_where_in_its_headers(method: str) -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(AnsweredLater) as accepted:
        go(perform(noting(seen, status=202), {"a": 1}, answer="later", method=method))

    headers = seen[0]["headers"]
    token = accepted.value.token
    assert headers["weft-webhook-url"] == f"https://weft.example/api/v1/webhook/{token}"
    body = b"{}"
    signature = sign_body(headers["weft-webhook-key"], body, now_s=1000)
    assert WEBHOOKS.open(token, body, signature, now_s=1000).attempt == 2


def test_a_bare_body_is_the_arguments_alone_and_the_metadata_are_in_headers() -> None:
    seen: list[dict[str, Any]] = []
    assert go(perform(noting(seen), {"order_id": "o-1"}, body="bare")) == {"total": 5}

    assert seen[0]["json"] == {"order_id": "o-1"}
    told = {name: seen[0]["headers"].get(name) for name in ("weft-run", "weft-step", "weft-key", "weft-webhook-url")}
    assert told == {
        "weft-run": "order-1",
        "weft-step": "price",
        "weft-key": "u1/price",
        "weft-webhook-url": None,
    }


def test_a_bare_answer_is_the_outputs_whatever_they_are_called() -> None:
    kind = {"Content-Type": "application/json"}
    answer = answering(body=b'{"success": false, "error": "none"}', headers=kind)

    assert go(perform(answer, {}, body="bare")) == {"success": False, "error": "none"}
    problem = answering(body=b'{"detail": "no"}', headers={"Content-Type": "application/problem+json"})
    with pytest.raises(HttpFailed, match="failed: no"):
        go(perform(problem, {}, body="bare"))


def test_the_key_is_in_the_address_of_a_service_that_cannot_sign() -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(AnsweredLater) as accepted:
        go(perform(noting(seen, status=202), {}, answer="later", webhook="url"))

    url, _, key = seen[0]["json"]["metadata"]["webhook_url"].partition("?key=")
    assert url.endswith(accepted.value.token)
    assert WEBHOOKS.open(accepted.value.token, b"{}", "", now_s=1000, key=key).by_url
    with pytest.raises(NotAllowed):
        WEBHOOKS.open(accepted.value.token, b"{}", "", now_s=1000, key="é" + key[1:])


def test_the_key_in_the_address_is_no_proof_where_the_step_did_not_ask_for_it() -> None:
    token = WEBHOOKS.token(Receipt("order-1", "u1", 0, "price", 2))
    with pytest.raises(NotAllowed):
        WEBHOOKS.open(token, b"{}", "", now_s=1000, key=WEBHOOKS.key(token))


@pytest.mark.parametrize(
    ("output", "path"), [({"charge_id": "c/7"}, "/undo/o-1/c%2F7"), (None, "")], ids=["known", "unknown"]
)
def test_a_call_is_taken_back_by_a_post_of_its_input_and_output(output: Any, path: str) -> None:
    seen: list[dict[str, Any]] = []

    async def scenario() -> bytes:
        async with serving(noting(seen)) as base, calling() as client:
            call = HttpCall(url=base + "/undo/{order_id}/{charge_id}", headers={"X-Shop": "7"})
            body = Compensation("charge", call, client, FixedClock())
            with task("u1/charge!undo"):
                return await body.perform(json.dumps({"order_id": "o-1", "result": output}).encode(), NOWHERE)

    if not path:  # an address that needs what nobody knows cannot be called
        with pytest.raises(BadValue, match="needs charge_id"):
            go(scenario())
        return
    assert go(scenario()) == b"null"
    assert (seen[0]["method"], seen[0]["path"]) == ("POST", path)
    assert seen[0]["json"] == {"input": {"order_id": "o-1"}, "output": output}
    assert (seen[0]["headers"]["weft-key"], seen[0]["headers"]["x-shop"]) == ("u1/charge!undo", "7")


def test_what_the_first_answer_says_is_ignored_when_the_real_one_comes_later() -> None:
    with pytest.raises(AnsweredLater):
        go(perform(answering(text="garbage", content_type="text/html"), {}, answer="later"))


def test_a_call_that_is_not_accepted_is_a_failure_as_ever() -> None:
    with pytest.raises(HttpUnavailable):
        go(perform(answering(status=503), {}, answer="later"))


def test_an_engine_that_cannot_be_answered_does_not_call() -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(UsageError, match="answer: later"):
        go(perform(noting(seen), {}, answer="later", webhooks=None))

    assert seen == []


@pytest.mark.parametrize("given", [b"[1]", b"1", b"null"])
def test_arguments_that_are_no_object_are_refused(given: bytes) -> None:
    async def scenario() -> None:
        async with calling() as client:
            await HttpStep("p", HttpCall(url="https://x/"), client, FixedClock()).perform(given, NOWHERE)

    with pytest.raises(BadValue):
        go(scenario())


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, "healthy"), (204, "healthy"), (399, "healthy"), (400, "unhealthy"), (503, "unhealthy")],
)
def test_a_server_is_healthy_that_answers_well(status: int, expected: str) -> None:
    async def scenario() -> str:
        async with serving(answering(status=status)) as base, calling() as client:
            return await health(client, f"{base}/ok")

    assert go(scenario()) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (None, "unknown"),
        ("", "unknown"),
        ("http://127.0.0.2/", "unhealthy"),
        ("http://127.0.0.1:1/", "unhealthy"),
        ("nonsense", "unhealthy"),
    ],
)
def test_without_an_address_nothing_is_known_and_without_an_answer_it_is_ill(url: str | None, expected: str) -> None:
    async def scenario() -> str:
        async with calling() as client:
            return await health(client, url)

    assert go(scenario()) == expected
