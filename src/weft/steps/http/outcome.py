"""Decide whether a response is a success, a final failure, or a reason to retry later. Pure."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from weft.steps.http.content import is_json, media_type
from weft.steps.http.exchange import HttpResponse
from weft.steps.http.failures import HttpFailed, HttpUnavailable

RETRY_AFTER_MS_MAX = 24 * 3_600_000
"""The limit of ``Retry-After``: a header must not stop a run for years."""

_TEMPORARY = frozenset({408, 425, 429})
_REASON_CHARS_MAX = 300


def check_status(answer: HttpResponse, *, now_ms: int) -> None:
    """Accept a 2xx status.

    Raises:
        HttpUnavailable: 408, 425, 429 and 5xx, with the time that ``Retry-After`` asks for.
        HttpFailed: every other status.
    """
    if answer.ok:
        return
    reason = f" {answer.reason}" if answer.reason else ""
    detail = _detail(answer)
    message = f"{answer.request.shown()} answered {answer.status}{reason}{f': {detail}' if detail else ''}."
    if answer.status in _TEMPORARY or answer.status >= 500:
        after_ms = retry_after_ms(answer, now_ms=now_ms)
        raise HttpUnavailable(
            message, status=answer.status, retry_after_ms=after_ms, in_doubt=answer.status in (408, 500, 502, 504)
        )
    raise HttpFailed(message, status=answer.status)


def retry_after_ms(answer: HttpResponse, *, now_ms: int) -> int | None:
    """Return how long ``Retry-After`` asks to wait, or None if it has no valid value.

    Its value is in seconds, or a date that is compared with the ``Date`` of the response.
    """
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]) * 1000, RETRY_AFTER_MS_MAX)
    at = _date_ms(text)
    if at is None:
        return None
    here = _date_ms(answer.headers.get("date", ""))
    return min(max(at - (here if here is not None else now_ms), 0), RETRY_AFTER_MS_MAX)


def _date_ms(text: str) -> int | None:
    try:
        return round(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _detail(answer: HttpResponse) -> str:
    """Return the server's reason in one line: the detail of a problem document, or the text of the body."""
    content_type = answer.headers.get("content-type", "")
    if is_json(content_type):
        return one_line(_problem(answer.body))
    if media_type(content_type) == "text/plain":
        return one_line(answer.body.decode("utf-8", "replace"))
    return ""


def _problem(body: bytes) -> str:
    try:
        return problem_text(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def problem_text(found: Any) -> str:
    """Return the text of a problem document (RFC 9457), or of a similar object."""
    if isinstance(found, dict):
        for name in ("detail", "title", "error", "message"):
            if isinstance(found.get(name), str):
                return str(found[name])
    return ""


def one_line(text: str) -> str:
    """Clean an untrusted text for a message: one line, printable, cut to a length."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[:4000]).split())
    return (line if len(line) <= _REASON_CHARS_MAX else f"{line[: _REASON_CHARS_MAX - 3]}...").rstrip(". ")
