"""What a status means, how long `Retry-After` asks to wait, and that a stranger's words do no harm in a message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.steps.http_kit import get
from weft.errors import BadValue, LimitExceeded, Unavailable
from weft.steps.http.exchange import HttpResponse
from weft.steps.http.failures import AddressRefused, HttpFailed, HttpUnavailable, is_final
from weft.steps.http.outcome import RETRY_AFTER_MS_MAX, check_status, retry_after_ms

NOW_MS = 1_445_412_480_000  # Wed, 21 Oct 2015 07:28:00 GMT


def answer(status: int = 200, body: bytes = b"", **headers: str) -> HttpResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(
        status=status, reason="Why", headers=named, body=body, request=get("https://shop.example/price?k=s")
    )


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 226, 299])
def test_every_2xx_is_a_success(status: int) -> None:
    check_status(answer(status), now_ms=NOW_MS)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 507, 599])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with pytest.raises(HttpUnavailable, match=f"answered {status} Why") as failed:
        check_status(answer(status), now_ms=NOW_MS)

    assert not is_final(failed.value)
    assert failed.value.status == status
    assert failed.value.retry_after_ms is None


@pytest.mark.parametrize("status", [300, 301, 304, 400, 401, 403, 404, 405, 409, 410, 418, 422, 451])
def test_what_will_not_change_is_final(status: int) -> None:
    with pytest.raises(HttpFailed) as failed:
        check_status(answer(status), now_ms=NOW_MS)

    assert is_final(failed.value)
    assert failed.value.status == status


@pytest.mark.parametrize(("status", "in_doubt"), [(429, False), (503, False), (425, False), (500, True), (504, True)])
def test_whether_the_request_may_have_been_acted_upon_is_known(status: int, in_doubt: bool) -> None:
    with pytest.raises(HttpUnavailable) as failed:
        check_status(answer(status), now_ms=NOW_MS)

    assert failed.value.in_doubt is in_doubt


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("120", 120_000),
        (" 7 ", 7_000),
        ("999999999999999999999", RETRY_AFTER_MS_MAX),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30_000),
        ("Wednesday, 21-Oct-15 07:28:30 GMT", 30_000),
        ("Wed Oct 21 07:28:30 2015", 30_000),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_MS_MAX),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("١٢", None),
        ("Wed, 99 Foo 2015", None),
        ("1e9", None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_never_too_long(text: str, expected: int | None) -> None:
    assert retry_after_ms(answer(503, retry_after=text), now_ms=NOW_MS) == expected


def test_a_date_is_measured_against_the_clock_of_who_sent_it() -> None:
    skewed = answer(503, retry_after="Wed, 21 Oct 2015 09:00:10 GMT", date="Wed, 21 Oct 2015 09:00:00 GMT")

    assert retry_after_ms(skewed, now_ms=NOW_MS) == 10_000


def test_the_failure_carries_the_time_to_wait() -> None:
    with pytest.raises(HttpUnavailable) as failed:
        check_status(answer(429, retry_after="3"), now_ms=NOW_MS)

    assert failed.value.retry_after_ms == 3_000


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        (
            "application/problem+json; charset=utf-8",
            b'{"title": "Out of stock", "detail": "No more of 7."}',
            ": No more of 7.",
        ),
        ("application/problem+json", b'{"title": "Out of stock"}', ": Out of stock."),
        ("application/json", b'{"error": "bad id"}', ": bad id."),
        ("text/plain", b"line one\r\nline\x1b[31m two\0", ": line one line [31m two."),
        ("text/html", b"<html>long page</html>", "."),
        ("application/json", b"{broken", "."),
        ("application/json", b"[" * 100_000, "."),
        ("text/plain", b"\xff\xfe", ": \ufffd\ufffd."),
    ],
)
def test_what_the_other_side_says_is_told_in_one_line(kind: str, body: bytes, told: str) -> None:
    with pytest.raises(HttpFailed) as failed:
        check_status(answer(404, body, content_type=kind), now_ms=NOW_MS)

    assert failed.value.message == f"GET https://shop.example/price answered 404 Why{told}"


def test_a_long_text_is_cut() -> None:
    with pytest.raises(HttpFailed) as failed:
        check_status(answer(400, b"x" * 50_000, content_type="text/plain"), now_ms=NOW_MS)

    assert len(failed.value.message) < 400


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (HttpFailed("x"), True),
        (HttpUnavailable("x"), False),
        (AddressRefused("x"), True),
        (BadValue("x"), True),
        (LimitExceeded("x"), True),
        (Unavailable("x"), False),
        (RuntimeError("x"), False),
        (TimeoutError(), False),
    ],
)
def test_only_what_cannot_change_is_final(error: Any, final: bool) -> None:
    assert is_final(error) is final
