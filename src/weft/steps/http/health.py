"""Check whether the server of a step is up. ``steps`` and ``explain`` show the result; no decision depends on it."""

from __future__ import annotations

from typing import Literal

from weft.errors import WeftError
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest

Health = Literal["healthy", "unhealthy", "unknown"]

TIMEOUT_MS = 3_000


async def health(client: HttpClient, url: str | None) -> Health:
    """Probe once: healthy means a GET with a status below 400 within three seconds. Without a URL: unknown."""
    if not url:
        return "unknown"
    return (await probe(client, url))[0]


async def probe(client: HttpClient, url: str) -> tuple[Health, str]:
    """Probe once, and say what is wrong."""
    try:
        answer = await client.send(HttpRequest(method="GET", url=url, timeout_ms=TIMEOUT_MS))
    except WeftError as error:
        return "unhealthy", error.message
    if answer.status < 400:
        return "healthy", ""
    return "unhealthy", f"{answer.request.shown()} answered {answer.status} {answer.reason}".rstrip()
