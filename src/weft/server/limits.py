"""Limits of requests. They are checked before a body is parsed, and keep one caller from affecting others."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache

import msgspec

from weft.cache import BoundedCache
from weft.ports.rate_buckets import RateBuckets
from weft.server.asgi import Receive
from weft.server.problems import BUSY, RETRY_AFTER_SECONDS, RequestRefused

SHARE_SECONDS = 0.01
"""A server takes tokens for this much time at once, at least one."""
KEPT_SECONDS = 1.0
"""Tokens that were taken and not spent expire after this time."""
# Reads every byte once, whatever the bytes are. A string that is not closed extends to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_OTHER_BYTES = bytes(byte for byte in range(256) if byte not in b"[]{}")
_OPENING = b"[{"


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a request, of one caller and of all callers. Only tests change them."""

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
    """The length of one id, name or token in a path."""
    head_seconds: float = 10.0
    """How long a client may take to send the head of a request."""
    body_seconds: float = 30.0
    unfinished_bytes: int = 64 * 1024 * 1024
    """The memory for bodies that have not arrived completely."""
    in_flight: int = 2_000
    """The number of requests in progress, apart from those that listen or wait. One caller may have half of them."""
    live: int = 4_000
    """The number of streams, WebSockets and waiting workers. One caller may have half of them."""
    rate_per_second: float = 10_000.0
    """How many requests one caller may make."""
    backlog_seconds: float = 30.0
    """New runs are refused while accepted work waits for longer than this."""
    wait_seconds: float = 60.0
    """How long a request may wait for an answer."""


class BodyReader:
    """Reads bodies. Each has a time limit, and all of them share a memory limit.

    A body that is still arriving takes no slot of the requests in progress, so a slow client keeps nobody out. When the
    memory is used up, the body that has been arriving for the longest time is dropped.
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
                return await self._read_all(receive, deadline)
        except TimeoutError:
            raise RequestRefused(
                408, "request.too_slow", f"The body did not arrive within {limits.body_seconds:g} seconds."
            ) from None
        finally:
            self._bytes -= self._arriving.pop(deadline, 0)

    async def _read_all(self, receive: Receive, deadline: asyncio.Timeout) -> bytes:
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
            self._reserve(deadline, len(chunk))

    def _reserve(self, deadline: asyncio.Timeout, more: int) -> None:
        self._arriving[deadline] = self._arriving.get(deadline, 0) + more
        self._bytes += more
        while self._bytes > self._limits.unfinished_bytes:
            oldest = next(iter(self._arriving))
            self._bytes -= self._arriving.pop(oldest)
            oldest.reschedule(0)


def check_json(raw: bytes, limits: RequestLimits) -> None:
    """Refuse JSON that is too expensive to parse, without parsing it. Raises RequestRefused."""
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
    if brackets > limits.depth and _nesting_depth(bare) > limits.depth:
        raise _exceeded(f"more than {limits.depth} levels")


def _is_small(raw: bytes, limits: RequestLimits) -> bool:
    """Return whether JSON is too small to exceed a limit, even if all brackets in its strings counted."""
    size = len(raw)
    return (
        size <= min(limits.string_bytes, limits.keys, limits.items)
        and raw.count(b"[") + raw.count(b"{") <= limits.depth
        and not _has_long_number(raw, limits.number_chars)
    )


def _has_long_number(bare: bytes, most: int) -> bool:
    # Matched only from the start of a number, so that a long number is not scanned again from each digit.
    return len(bare) > most and _long_number(most).search(bare) is not None


@lru_cache
def _long_number(most: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![0-9+\-.eE])[0-9+\-.eE]{%d}" % (most + 1))


def _nesting_depth(bare: bytes) -> int:
    """Return how deep brackets are nested. Brackets that do not match are left to the parser."""
    deepest = depth = 0
    for byte in bare.translate(None, _OTHER_BYTES):
        if byte in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


class RequestRates:
    """A token bucket per caller. The callers that have been silent longest are forgotten first.

    With Redis, the bucket of a caller with a name is shared by all servers of a deployment. A server takes a few tokens
    at once and spends them by itself, so most requests need no call to Redis. While Redis does not answer, every
    server has buckets of its own.
    """

    def __init__(
        self,
        per_second: float,
        shared: Callable[[], RateBuckets | None] = lambda: None,
        *,
        unnamed: str = "",
        callers_max: int = 10_000,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``shared`` returns the buckets that all servers share, or None if this server counts alone.

        The caller ``unnamed`` is always counted by this server alone.
        """
        self._per_second = per_second
        self._burst = 2 * per_second
        self._shared = shared
        self._unnamed = unnamed
        self._monotonic = monotonic
        self._buckets: BoundedCache[str, tuple[float, float]] = BoundedCache(callers_max)
        self._taken: BoundedCache[str, _Taken] = BoundedCache(callers_max)

    async def take(self, caller: str) -> None:
        """Count a request. Raises RequestRefused if the caller makes too many."""
        shared = self._shared() if caller != self._unnamed else None
        allowed = None if shared is None else await self._take_shared(shared, caller)
        if allowed is None:
            allowed = self._take_own(caller)
        if not allowed:
            raise busy_refusal(
                f"The caller makes more than {self._per_second:g} requests per second.",
                max(1, round(1 / self._per_second)),
            )

    def _take_own(self, caller: str) -> bool:
        moment = self._monotonic()
        tokens, since = self._buckets.get(caller) or (self._burst, moment)
        tokens = min(self._burst, tokens + (moment - since) * self._per_second)
        allowed = tokens >= 1
        self._buckets.put(caller, (tokens - 1 if allowed else tokens, moment))
        return allowed

    async def _take_shared(self, shared: RateBuckets, caller: str) -> bool | None:
        """Return whether the shared bucket allows a request; None if it cannot be asked."""
        taken = self._taken.get(caller)
        if taken is None:
            taken = _Taken()
            self._taken.put(caller, taken)
        while not taken.spend(self._monotonic()):
            # Requests that come meanwhile wait for the same answer.
            if taken.asking is None:
                taken.asking = asyncio.ensure_future(self._ask(shared, caller, taken))
            taken.waiting += 1
            try:
                given = await asyncio.shield(taken.asking)
            finally:
                taken.waiting -= 1
            if not given:
                return None if given is None else False
        return True

    async def _ask(self, shared: RateBuckets, caller: str, taken: _Taken) -> int | None:
        try:
            await asyncio.sleep(0)  # so that all requests that have arrived are counted
            wanted = max(1, taken.waiting, int(self._per_second * SHARE_SECONDS))
            given = await shared.take(caller, wanted=wanted, per_second=self._per_second, burst=self._burst)
            if given:
                taken.tokens, taken.until = given, self._monotonic() + KEPT_SECONDS
            return given
        finally:
            taken.asking = None


class _Taken:
    """The tokens that this server has taken from one caller's bucket and not spent."""

    __slots__ = ("asking", "tokens", "until", "waiting")

    def __init__(self) -> None:
        self.tokens = 0
        self.until = 0.0
        self.asking: asyncio.Task[int | None] | None = None
        """The question for more."""
        self.waiting = 0
        """How many requests wait for its answer."""

    def spend(self, now: float) -> bool:
        """Spend one token, if there is one."""
        if self.tokens < 1 or now > self.until:
            return False
        self.tokens -= 1
        return True


def busy_refusal(detail: str, retry_after: int = RETRY_AFTER_SECONDS) -> RequestRefused:
    """Return the refusal of a request that may succeed later."""
    return RequestRefused(429, BUSY, detail, hint="Try again later.", retry_after=retry_after)


def _too_large(limits: RequestLimits) -> RequestRefused:
    return RequestRefused(413, "limit.exceeded", f"The body has more than {limits.body_bytes:,} bytes.")


def _exceeded(what: str) -> RequestRefused:
    return RequestRefused(413, "limit.exceeded", f"The body has {what}.")


class RequestSlots:
    """A number of slots for requests. One caller may have half of them. A request without a slot is refused."""

    def __init__(self, most: int, what: str, on_change: Callable[[int], None] = lambda _: None) -> None:
        self._most = most
        self._per_caller = max(1, most // 2)
        self._what = what
        self._on_change = on_change
        self._total = 0
        self._taken: dict[str, int] = {}

    @contextlib.contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        """Take a slot for this tenant or address. Raises RequestRefused if none is free."""
        own = self._taken.get(caller, 0)
        if own >= self._per_caller or self._total >= self._most:
            most = self._per_caller if own >= self._per_caller else self._most
            raise busy_refusal(f"The limit of {most:,} simultaneous {self._what} is reached.")
        self._taken[caller] = own + 1
        self._total += 1
        self._on_change(1)
        try:
            yield
        finally:
            self._total -= 1
            self._on_change(-1)
            own = self._taken[caller] - 1
            if own:
                self._taken[caller] = own
            else:
                del self._taken[caller]
