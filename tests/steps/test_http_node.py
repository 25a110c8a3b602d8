"""The `http` node of a graph against a real server: what it sends, and what it makes of each kind of answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
from aiohttp import web

from tests.steps.http_kit import FixedClock, answering, calling, go, saying, serving, speaking, task
from weft.errors import BadDuration, BadValue, LimitExceeded, UsageError, WeftError
from weft.graphs.work import HTTP
from weft.steps.http.failures import AnsweredLater, HttpFailed, HttpUnavailable
from weft.steps.http.node import HttpNode, _HttpFields
from weft.steps.http.webhooks import Receipt, Webhooks
from weft.steps.task import StepBody
from weft.tokens import sign_body

KEPT: dict[str, bytes] = {}
WEBHOOKS = Webhooks("https://weft.example/webhook", "a secret of enough bytes")


async def keep(data: bytes) -> str:
    reference = f"cas://sha256:{hashlib.sha256(data).hexdigest()}"
    KEPT[reference] = data
    return reference


async def perform(handler: Any, webhooks: Webhooks | None = WEBHOOKS, **given: Any) -> Any:
    serve = serving(handler) if asyncio.iscoroutinefunction(handler) and handler.__code__.co_argcount == 1 else None
    async with serve or speaking(handler) as base, calling() as client:
        body: StepBody = HttpNode(client, FixedClock(), keep, webhooks=webhooks)
        fields = {"url": f"{base}/x", **given}
        with task():
            return json.loads(await body.perform(json.dumps(fields).encode(), NOWHERE))


NOWHERE: Any = None
"""An HTTP call needs no thread and no process."""


class Seen:
    """A server that remembers the request."""

    def __init__(self) -> None:
        self.method = self.path = self.body = ""
        self.headers: dict[str, str] = {}

    def handler(self) -> Any:
        async def note(request: web.Request) -> web.StreamResponse:
            self.method, self.path, self.body = request.method, str(request.rel_url), await request.text()
            self.headers = {name.lower(): value for name, value in request.headers.items()}
            return web.json_response({"ok": True})

        return note


def test_every_field_of_a_document_is_understood() -> None:
    assert set(HTTP) <= set(_HttpFields.__struct_fields__)


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("application/json", b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("application/json; charset=utf-8", b'"text"', "text"),
        ("application/vnd.api+json", b"[]", []),
        ("application/json", b"\xef\xbb\xbf{}", {}),
        ("application/json", b"", None),
        ("text/plain", b"hello", "hello"),
        ("text/plain", b'{"a": 1}', '{"a": 1}'),
        ("text/html; charset=ISO-8859-1", b"caf\xe9", "café"),
        ('text/csv; charset="utf-8"', "ü;1".encode(), "ü;1"),
        ("application/xml", b"<a/>", "<a/>"),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
        ("text/plain", b"", ""),
        ("application/octet-stream", b"", None),
    ],
)
def test_json_is_parsed_and_text_is_text(kind: str, body: bytes, expected: Any) -> None:
    found = go(perform(answering(body=body, headers={"Content-Type": kind})))

    assert found["status"] == 200
    assert found["headers"]["content-type"] == kind
    assert found["body"] == expected


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/pdf", b"%PDF-1.7 \0\xff"),
        ("image/png", b"\x89PNG"),
        ("application/octet-stream", b'{"a": 1}'),
        ("text/plain; charset=utf-8", b"caf\xe9"),
        ("text/plain; charset=unicode_escape", b"\\ud800"),
        ("text/plain; charset=no-such", b"abc"),
        ("text/plain", b"a\0b"),
        ("nonsense", b"abc"),
    ],
)
def test_anything_else_is_kept_as_bytes_and_named_by_a_reference(kind: str, body: bytes) -> None:
    found = go(perform(answering(body=body, headers={"Content-Type": kind})))

    assert found["body"].startswith("cas://sha256:")
    assert KEPT[found["body"]] == body


def test_an_answer_without_a_type_is_bytes() -> None:
    found = go(perform(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")))

    assert KEPT[found["body"]] == b"abc"


@pytest.mark.parametrize("body", [b"<html>", b"{", b"NaN", b'{"a": 1} x', b"\xff", b"'a'", b"[" * 200_000])
def test_json_that_is_none_fails_for_good(body: bytes) -> None:
    with pytest.raises((HttpFailed, LimitExceeded)) as failed:
        go(perform(answering(body=body, headers={"Content-Type": "application/json"})))

    assert not isinstance(failed.value, HttpUnavailable)


@pytest.mark.parametrize("body", [b'"a\\u0000b"', b"[" * 150 + b"]" * 150, b'"\\ud800"'])
def test_json_that_no_store_could_keep_is_refused(body: bytes) -> None:
    with pytest.raises(WeftError) as failed:
        go(perform(answering(body=body, headers={"Content-Type": "application/json"})))

    assert HttpNode(NOWHERE, FixedClock(), keep).is_final(failed.value)


def test_a_request_is_sent_as_it_is_written() -> None:
    seen = Seen()
    go(
        perform(
            seen.handler(),
            method="post",
            headers={"X-Trace": "t1", "X-Count": 3, "X-Flag": True, "X-None": None, "X-Many": ["a", "b"]},
            query={"q": "a b&c=d", "n": 2, "on": False, "tag": ["x", "ü"], "none": None},
            body={"order": 1, "note": "ü"},
            accept="application/pdf",
        )
    )

    assert seen.method == "POST"
    assert seen.path == "/x?q=a+b%26c%3Dd&n=2&on=false&tag=x&tag=%C3%BC"
    assert json.loads(seen.body) == {"order": 1, "note": "ü"}
    expected = {
        "content-type": "application/json",
        "accept": "application/pdf",
        "x-trace": "t1",
        "x-count": "3",
        "x-flag": "true",
        "x-many": "a, b",
        "idempotency-key": "u1/price",
        "weft-run": "order-1",
        "weft-step": "price",
        "weft-attempt": "2",
        "accept-encoding": "gzip, deflate",
    }
    assert expected.items() <= seen.headers.items()
    assert "x-none" not in seen.headers


def test_text_is_sent_as_text_and_own_headers_win() -> None:
    seen = Seen()
    go(perform(seen.handler(), method="PUT", body="<a/>", headers={"Content-Type": "text/xml", "Idempotency-Key": "k"}))

    assert seen.body == "<a/>"
    assert seen.headers["content-type"] == "text/xml"
    assert seen.headers["idempotency-key"] == "k"


def test_a_get_has_no_body_and_no_type() -> None:
    seen = Seen()
    go(perform(seen.handler()))

    assert seen.method == "GET"
    assert seen.body == ""
    assert "content-type" not in seen.headers


def test_a_key_with_letters_of_any_language_becomes_a_header() -> None:
    seen = Seen()

    async def scenario() -> None:
        async with serving(seen.handler()) as base, calling() as client:
            with task(key="u1/prüfe\n[1]"):
                await HttpNode(client, FixedClock(), keep).perform(json.dumps({"url": base}).encode(), NOWHERE)

    go(scenario())
    assert seen.headers["idempotency-key"] == "u1/pr%C3%BCfe%0A[1]"


@pytest.mark.parametrize(
    "given",
    [
        {"url": 1},
        {"headers": {"a": {}}},
        {"query": {"a": {}}},
        {"query": {"a": [[1]]}},
        {"method": "BREW"},
        {"unknown": 1},
        {"answer": "maybe"},
        {"headers": {"a": "b\r\nc: d"}},
        {"headers": {"host": "x"}},
        {"timeout": "2h"},
        {"timeout": 0},
        {"url": "file:///etc/passwd"},
        {"url": "https://u:p@x/"},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadValue) as refused:
        go(perform(answering(text="x"), **given))

    assert HttpNode(NOWHERE, FixedClock(), keep).is_final(refused.value)


def test_a_timeout_is_a_duration() -> None:
    async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    with pytest.raises(HttpUnavailable, match="took longer than 50ms"):
        go(perform(hang, timeout="50ms"))
    with pytest.raises(BadDuration):
        go(perform(hang, timeout="soon"))


def test_a_status_that_asks_to_wait_is_a_failure_that_says_how_long() -> None:
    with pytest.raises(HttpUnavailable) as failed:
        go(perform(answering(status=503, headers={"Retry-After": "2"})))

    assert failed.value.retry_after_ms == 2_000


def test_an_answer_that_comes_later_is_no_answer_now() -> None:
    seen = Seen()
    with pytest.raises(AnsweredLater) as accepted:
        go(perform(seen.handler(), method="POST", answer="later"))

    token = accepted.value.token
    assert seen.headers["weft-webhook-url"] == f"https://weft.example/webhook/{token}"
    signature = sign_body(seen.headers["weft-webhook-key"], b"{}", now_s=100)
    assert WEBHOOKS.open(token, b"{}", signature, now_s=100) == Receipt("order-1", "u1", 0, "price", 2)


def test_an_engine_that_cannot_be_answered_does_not_ask_for_a_later_answer() -> None:
    seen = Seen()
    with pytest.raises(UsageError, match="WEFT_WEBHOOK_URL"):
        go(perform(seen.handler(), webhooks=None, method="POST", answer="later"))

    assert seen.method == ""
