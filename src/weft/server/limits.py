"""Limits of requests, checked before a body is parsed and before other callers are affected."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache

import msgspec

from weft.cache import BoundedCache
from weft.server.asgi import Receive
from weft.server.problems import BUSY, RETRY_AFTER_SECONDS, RequestRefused

# Reads every byte once, whatever the bytes are: a string that is not closed goes on to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_OTHER_BYTES = bytes(byte for byte in range(256) if byte not in b"[]{}")
_OPENING = b"[{"


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a request, a caller and all callers may use. Only tests change these."""

    body_bytes: int = 4 * 1024 * 1024
    depth: int = 64
    keys: int = 50_000
    items: int = 200_000
    string_bytes: int = 1024 * 1024
    number_chars: int = 64
    headers: int = 64
    header_bytes: int = 16 * 1024
    query_bytes: int = 8 * 1024
    path_bytes: int = 16 * 1024
    parameter_chars: int = 5_000
    """Of one id, name or token in a path."""
    head_seconds: float = 10.0
    """How long a client may take to send the head of a request."""
    body_seconds: float = 30.0
    unfinished_bytes: int = 64 * 1024 * 1024
    """Memory for bodies that have not arrived completely."""
    in_flight: int = 2_000
    """Requests in progress, besides those that only listen or wait for work. One caller may have half of them."""
    live: int = 4_000
    """Streams, sockets and waiting workers. One caller may have half of them."""
    rate_per_second: float = 10_000.0
    """Of one caller."""
    backlog_seconds: float = 30.0
    """While work waits longer than this, new runs are refused."""
    wait_seconds: float = 60.0
    """The longest that a request may wait for an answer."""


class Bodies:
    """Reads bodies, each within its time and all of them within a budget of memory.

    A body that is still arriving takes no place among the requests in progress: a slow client keeps nobody out. When
    the budget is used up, the body that has been arriving for the longest time is dropped.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._arriving: dict[asyncio.Timeout, int] = {}
        self._bytes = 0

    async def read(self, receive: Receive, length: str | None) -> bytes:
        """Return the whole body. Raises RequestRefused as soon as it is known to be too large or too slow."""
        limits = self._limits
        if length is not None and (not length.isdigit() or int(length[:20]) > limits.body_bytes):
            raise _too_large(limits)
        deadline = asyncio.timeout(limits.body_seconds)
        try:
            async with deadline:
                return await self._whole(receive, deadline)
        except TimeoutError:
            raise RequestRefused(
                408, "request.too_slow", f"The body did not arrive within {limits.body_seconds:g} seconds."
            ) from None
        finally:
            self._bytes -= self._arriving.pop(deadline, 0)

    async def _whole(self, receive: Receive, deadline: asyncio.Timeout) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestRefused(400, "request.malformed", "The connection ended before the body did.")
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > self._limits.body_bytes:
                raise _too_large(self._limits)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            self._hold(deadline, len(chunk))

    def _hold(self, deadline: asyncio.Timeout, more: int) -> None:
        self._arriving[deadline] = self._arriving.get(deadline, 0) + more
        self._bytes += more
        while self._bytes > self._limits.unfinished_bytes:
            oldest = next(iter(self._arriving))
            self._bytes -= self._arriving.pop(oldest)
            oldest.reschedule(0)


def check_json(raw: bytes, limits: RequestLimits) -> None:
    """Refuse JSON that is too expensive to parse, by its bytes alone. It need not be valid. Raises RequestRefused."""
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


def _is_small(raw: bytes, limits: RequestLimits) -> bool:
    """Return whether JSON is too small to exceed a limit, even if brackets in its texts were structure."""
    size = len(raw)
    return (
        size <= min(limits.string_bytes, limits.keys, limits.items)
        and raw.count(b"[") + raw.count(b"{") <= limits.depth
        and not _has_long_number(raw, limits.number_chars)
    )


def _has_long_number(bare: bytes, most: int) -> bool:
    # Matched only from the start of a number: otherwise a long one would be scanned once for each of its digits.
    return len(bare) > most and _long_number(most).search(bare) is not None


@lru_cache
def _long_number(most: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![0-9+\-.eE])[0-9+\-.eE]{%d}" % (most + 1))


def _depth(bare: bytes) -> int:
    """Return how deep brackets are nested. The parser refuses those that do not match."""
    deepest = depth = 0
    for byte in bare.translate(None, _OTHER_BYTES):
        if byte in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


class RequestRates:
    """A token bucket per caller. Callers that have not called for the longest time are forgotten first."""

    def __init__(self, per_second: float, callers_max: int = 10_000) -> None:
        self._per_second = per_second
        self._burst = 2 * per_second
        self._buckets: BoundedCache[str, tuple[float, float]] = BoundedCache(callers_max)

    def take(self, caller: str, now: float | None = None) -> None:
        """Count a request. Raises RequestRefused."""
        moment = time.monotonic() if now is None else now
        tokens, since = self._buckets.get(caller) or (self._burst, moment)
        tokens = min(self._burst, tokens + (moment - since) * self._per_second)
        allowed = tokens >= 1
        self._buckets.put(caller, (tokens - 1 if allowed else tokens, moment))
        if not allowed:
            raise busy(f"More than {self._per_second:g} requests per second.", max(1, round(1 / self._per_second)))


def busy(detail: str, retry_after: int = RETRY_AFTER_SECONDS) -> RequestRefused:
    """Return the refusal of a request that may succeed later."""
    return RequestRefused(429, BUSY, detail, hint="Come again later.", retry_after=retry_after)


def _too_large(limits: RequestLimits) -> RequestRefused:
    return RequestRefused(413, "limit.exceeded", f"The body has more than {limits.body_bytes:,} bytes.")


def _exceeded(what: str) -> RequestRefused:
    return RequestRefused(413, "limit.exceeded", f"The body has {what}.")


class Room:
    """A number of places for requests. One caller may have half of them; a request without a place is refused."""

    def __init__(self, most: int, what: str, changed: Callable[[int], None] = lambda _: None) -> None:
        self._most = most
        self._each = max(1, most // 2)
        self._what = what
        self._changed = changed
        self._inside = 0
        self._places: dict[str, int] = {}

    @contextlib.contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Take a place for this tenant or address. Raises RequestRefused."""
        mine = self._places.get(caller, 0)
        if mine >= self._each or self._inside >= self._most:
            most = self._each if mine >= self._each else self._most
            raise busy(f"{most:,} {self._what} at once.")
        self._places[caller] = mine + 1
        self._inside += 1
        self._changed(1)
        try:
            yield
        finally:
            self._inside -= 1
            self._changed(-1)
            mine = self._places[caller] - 1
            if mine:
                self._places[caller] = mine
            else:
                del self._places[caller]
