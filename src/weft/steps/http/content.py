"""Decode the body of a response: JSON, text, or bytes. Pure."""

from __future__ import annotations

import codecs
from typing import Any

import msgspec

from weft.steps.http.exchange import HttpResponse
from weft.steps.http.failures import HttpFailed

# Only the character sets of the web: some Python codecs are not character sets (unicode_escape, idna, punycode).
_CHARSETS = frozenset(
    codecs.lookup(name).name
    for name in (
        "ascii", "big5", "euc-jp", "euc-kr", "gb18030", "gb2312", "gbk", "iso-8859-1", "iso-8859-2", "iso-8859-5",
        "iso-8859-7", "iso-8859-9", "iso-8859-15", "iso-2022-jp", "koi8-r", "koi8-u", "shift_jis", "utf-8", "utf-16",
        "utf-16-be", "utf-16-le", "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254",
    )
)  # fmt: skip
_TEXTS = frozenset({
    "application/ecmascript", "application/graphql", "application/javascript", "application/sql", "application/toml",
    "application/x-ndjson", "application/x-www-form-urlencoded", "application/xml", "application/yaml",
    "application/x-yaml", "image/svg+xml",
})  # fmt: skip


def media_type(content_type: str) -> str:
    """Return the media type without its parameters: ``application/json``."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    """Return whether a media type is JSON, or a format based on it."""
    media = media_type(content_type)
    return media == "application/json" or media.endswith("+json") or media == "text/json"


def body_value(answer: HttpResponse) -> Any:
    """Return the body as a value: JSON, text, or bytes if it is neither. An empty body is None.

    Raises:
        HttpFailed: the media type is JSON, but the body is not.
    """
    content_type = answer.headers.get("content-type", "")
    media = media_type(content_type)
    if is_json(content_type):
        return parse_json(answer.body, answer.request.shown()) if answer.body.strip() else None
    if media.startswith("text/") or media.endswith("+xml") or media in _TEXTS:
        text = _content_text(answer.body, _charset(content_type))
        return text if text is not None else answer.body
    return answer.body or None


def answered_value(answer: HttpResponse) -> Any:
    """Return the body as a value: JSON, or else text. The request was performed, so that no body is a failure."""
    try:
        body = body_value(answer)
    except HttpFailed:
        body = answer.body
    return body.decode("utf-8", "replace") if isinstance(body, bytes) else body


def parse_json(body: bytes, what: str) -> Any:
    """Parse the body as JSON, whatever its media type. ``what`` begins the message of an error.

    Raises:
        HttpFailed: the body is not JSON.
    """
    try:
        return msgspec.json.decode(body.removeprefix(codecs.BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpFailed(f"{what} answered with something that is not JSON: {str(error)[:200]}.") from error


def _charset(content_type: str) -> str:
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return "utf-8"


def _content_text(body: bytes, charset: str) -> str | None:
    """Decode the text. Returns None if it is not valid, or if a store would reject it."""
    try:
        if codecs.lookup(charset).name not in _CHARSETS:
            return None
        text = body.decode(charset)
    except (LookupError, ValueError):
        return None
    return None if "\0" in text else text.removeprefix("\ufeff")
