"""The HTTP client of all steps. It belongs to one event loop; whoever makes it closes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.extras import require
from weft.steps.http.addresses import Allowed, allowed_here
from weft.steps.http.exchange import HttpLimits, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from weft.steps.http.guard import Lookup
    from weft.steps.http.wire import Wire


class HttpClient:
    """Sends requests. Opens nothing before the first one."""

    def __init__(
        self, allowed: Allowed | None = None, *, limits: HttpLimits | None = None, lookup: Lookup | None = None
    ) -> None:
        self._allowed = allowed
        self._limits = limits or HttpLimits()
        self._lookup = lookup
        self._wire: Wire | None = None

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send it, follow redirects, and read the answer to its end, whatever its status.

        Raises:
            AddressRefused: it, or where it was redirected to, may not be called.
            HttpUnavailable: no answer, or not a whole one.
            HttpFailed: what came is no HTTP, or redirects without end.
            LimitExceeded: the answer is too big.
            BadValue: the request cannot be sent.
        """
        if self._wire is None:
            self._wire = self._open()
        return await self._wire.send(request)

    def _open(self) -> Wire:
        require("http", "An HTTP request")
        from weft.steps.http.guard import Guard, system_lookup  # noqa: PLC0415 - aiohttp: not before the first call
        from weft.steps.http.wire import Wire  # noqa: PLC0415

        allowed = self._allowed if self._allowed is not None else allowed_here()
        return Wire(Guard(allowed, self._lookup or system_lookup), self._limits)

    async def close(self) -> None:
        """Close every connection. What is under way fails."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()
