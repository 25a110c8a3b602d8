"""Check whether the server of a step is up. ``steps`` and ``explain`` show the result; no decision depends on it."""

from __future__ import annotations

from typing import Literal

from weft.errors import WeftError
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest

Health = Literal["healthy", "unhealthy", "unknown"]

TIMEOUT_MS = 3_000


async def health(client: HttpClient, url: str | None) -> Health:
    """Check the server once. It is healthy if a GET returns a status below 400 within three seconds.

    Without a URL, its health is unknown.
    """
    if not url:
        return "unknown"
    return (await check_server_health(client, url))[0]


async def check_server_health(client: HttpClient, url: str) -> tuple[Health, str]:
    """Check the server once. Returns its health, and the reason if it is unhealthy."""
    try:
        answer = await client.send(HttpRequest(method="GET", url=url, timeout_ms=TIMEOUT_MS))
    except WeftError as error:
        return "unhealthy", error.message
    if answer.status < 400:
        return "healthy", ""
    return "unhealthy", f"{answer.request.shown()} answered {answer.status} {answer.reason}".rstrip()
