"""The HTTP client of all steps. A client belongs to one event loop, and its creator must close it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.extras import require
from weft.steps.http.addresses import Allowed, allowed_here
from weft.steps.http.exchange import HttpLimits, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from weft.steps.http.guard import Lookup
    from weft.steps.http.wire import Wire


class HttpClient:
    """Sends requests. Opens no connection before the first request."""

    def __init__(
        self, allowed: Allowed | None = None, *, limits: HttpLimits | None = None, lookup: Lookup | None = None
    ) -> None:
        self._allowed = allowed
        self._limits = limits or HttpLimits()
        self._lookup = lookup
        self._wire: Wire | None = None

    async def send(self, request: HttpRequest, on_data: Callable[[bytes], bool] | None = None) -> HttpResponse:
        """Send a request, follow redirects, and read the whole response, whatever its status.

        ``on_data`` gets the body of a successful response piece by piece, instead of the returned response. It returns
        whether it wants more. What it raises ends the call.

        Raises:
            AddressRefused: the address, or the target of a redirect, may not be called.
            HttpUnavailable: there was no response, or an incomplete one.
            HttpFailed: the response is not HTTP, or there were too many redirects.
            LimitExceeded: the response is too big.
            BadValue: the request cannot be sent.
        """
        if self._wire is None:
            self._wire = self._open()
        return await self._wire.send(request, on_data)

    def _open(self) -> Wire:
        require("http", "An HTTP request")
        from weft.steps.http.guard import Guard, system_lookup  # noqa: PLC0415 - aiohttp: not before the first call
        from weft.steps.http.wire import Wire  # noqa: PLC0415

        allowed = self._allowed if self._allowed is not None else allowed_here()
        return Wire(Guard(allowed, self._lookup or system_lookup), self._limits)

    async def close(self) -> None:
        """Close every connection. Open requests fail."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()
