"""Limits at the door: what is refused before it is parsed, and before it costs others their turn."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

import msgspec

from weft.server.problems import BUSY, RETRY_AFTER_SECONDS, RequestRefused

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

# Every byte is looked at once, whatever the bytes are: one that is not closed goes on to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_OTHER_BYTES = bytes(byte for byte in range(256) if byte not in b"[]{}")
_OPENING = b"[{"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is taken. Users set none of these; tests do."""

    body_bytes: int = 4 * 1024 * 1024
    depth: int = 64
    keys: int = 50_000
    items: int = 200_000
    string_bytes: int = 1024 * 1024
    number_chars: int = 64
    headers: int = 64
    header_bytes: int = 16 * 1024
    query_bytes: int = 8 * 1024
    in_flight: int = 1_000
    """Requests at once, besides those that only listen or wait for work."""
    live: int = 2_000
    """Streams, sockets and workers that wait, at once."""
    rate_per_second: float = 10_000.0
    """Of one caller."""
    backlog_seconds: float = 30.0
    """Work that waits longer than this: no new runs are taken."""
    wait_seconds: float = 60.0
    """The longest that a request may wait for an answer."""


async def read_body(receive: Receive, length: str | None, limits: Limits) -> bytes:
    """The whole body. Raises RequestRefused as soon as it is known to be too large."""
    if length is not None and (not length.isdigit() or int(length[:20]) > limits.body_bytes):
        raise _too_large(limits)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRefused(400, "request.malformed", "The connection ended before the body did.")
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limits.body_bytes:
            raise _too_large(limits)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def check_json(raw: bytes, limits: Limits) -> None:
    """Refuse JSON that would cost too much to read, by its bytes alone. Whether it is JSON is for the parser to say."""
    if _is_small(raw, limits):
        return
    if len(raw) > limits.string_bytes and any(
        len(found[0]) > limits.string_bytes + 2 for found in _STRING.finditer(raw)
    ):
        raise _exceeded(f"a text of more than {limits.string_bytes:,} bytes")
    bare = _STRING.sub(b'""', raw)
    if bare.count(b":") > limits.keys:
        raise _exceeded(f"more than {limits.keys:,} keys")
    brackets = bare.count(b"[") + bare.count(b"{")
    if bare.count(b",") > limits.items or brackets > limits.items:
        raise _exceeded(f"more than {limits.items:,} values")
    if _has_long_number(bare, limits.number_chars):
        raise _exceeded(f"a number of more than {limits.number_chars} characters")
    if brackets > limits.depth and _depth(bare) > limits.depth:
        raise _exceeded(f"more than {limits.depth} levels")


def _is_small(raw: bytes, limits: Limits) -> bool:
    """Whether it cannot exceed anything, also if all that looks like structure in its texts were some."""
    size = len(raw)
    return (
        size <= min(limits.string_bytes, limits.keys, limits.items)
        and raw.count(b"[") + raw.count(b"{") <= limits.depth
        and not _has_long_number(raw, limits.number_chars)
    )


def _has_long_number(bare: bytes, most: int) -> bool:
    # Only from where one begins: otherwise every digit of a long one would be counted again and again.
    return len(bare) > most and _long_number(most).search(bare) is not None


@lru_cache
def _long_number(most: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![0-9+\-.eE])[0-9+\-.eE]{%d}" % (most + 1))


def _depth(bare: bytes) -> int:
    """How deep brackets are nested; those that do not match are for the parser to complain of."""
    deepest = depth = 0
    for byte in bare.translate(None, _OTHER_BYTES):
        if byte in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


class Rates:
    """A bucket of tokens per caller; the callers longest unseen are forgotten first."""

    def __init__(self, per_second: float, callers_max: int = 10_000) -> None:
        self._per_second = per_second
        self._burst = 2 * per_second
        self._callers_max = callers_max
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now: float | None = None) -> None:
        """Count a request. Raises RequestRefused."""
        moment = time.monotonic() if now is None else now
        tokens, since = self._buckets.get(caller, (self._burst, moment))
        tokens = min(self._burst, tokens + (moment - since) * self._per_second)
        allowed = tokens >= 1
        self._buckets[caller] = (tokens - 1 if allowed else tokens, moment)
        self._buckets.move_to_end(caller)
        while len(self._buckets) > self._callers_max:
            self._buckets.popitem(last=False)
        if not allowed:
            raise busy(f"More than {self._per_second:g} requests per second.", max(1, round(1 / self._per_second)))


def busy(detail: str, retry_after: int = RETRY_AFTER_SECONDS) -> RequestRefused:
    """Come again later."""
    return RequestRefused(429, BUSY, detail, hint="Come again later.", retry_after=retry_after)


def _too_large(limits: Limits) -> RequestRefused:
    return RequestRefused(413, "limit.exceeded", f"The body has more than {limits.body_bytes:,} bytes.")


def _exceeded(what: str) -> RequestRefused:
    return RequestRefused(413, "limit.exceeded", f"The body has {what}.")


class Room:
    """How many may be in at once; the next one is told to come again."""

    def __init__(self, most: int, what: str, changed: Callable[[int], None] = lambda _: None) -> None:
        self._most = most
        self._what = what
        self._changed = changed
        self._inside = 0

    def __enter__(self) -> None:
        if self._inside >= self._most:
            raise busy(f"{self._most:,} {self._what} at once.")
        self._inside += 1
        self._changed(1)

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        self._changed(-1)
