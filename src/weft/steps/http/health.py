"""Whether the server of a step is there. It informs `steps` and `explain`; it decides nothing."""

from __future__ import annotations

from typing import Literal

from weft.errors import WeftError
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import Request

Health = Literal["healthy", "unhealthy", "unknown"]

TIMEOUT_MS = 3_000


async def health(client: HttpClient, url: str | None) -> Health:
    """One probe: a GET that is answered below 400 within three seconds. Without an address nothing is known."""
    if not url:
        return "unknown"
    try:
        answer = await client.send(Request(method="GET", url=url, timeout_ms=TIMEOUT_MS))
    except WeftError:
        return "unhealthy"
    return "healthy" if answer.status < 400 else "unhealthy"
