"""MCP clients of the package ``mcp``, for tests of the server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import httpx2
import msgspec
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, TextContent

from tests.server.kit import Server, used

SECONDS_MAX = 120


@contextlib.asynccontextmanager
async def client_of(server: Server, key: str = "", **options: Any) -> AsyncIterator[Client]:
    """A client of a server over HTTP."""
    used("POST", "/mcp")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SECONDS_MAX) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), cache=None, **options) as client,
    ):
        yield client


def ask(work: Coroutine[Any, Any, Any]) -> Any:
    """Do what a client does, with a limit."""

    async def limited() -> Any:
        async with asyncio.timeout(SECONDS_MAX):
            return await work

    return asyncio.run(limited())


def said(result: CallToolResult) -> Any:
    """What a tool returned. Its text is the same."""
    (text,) = result.content
    assert isinstance(text, TextContent)
    assert msgspec.json.decode(text.text) == result.structured_content
    return result.structured_content


def complaint(result: CallToolResult) -> str:
    """What a tool said went wrong."""
    assert result.is_error
    (text,) = result.content
    assert isinstance(text, TextContent)
    return text.text


def answering(forms: list[Any], *answers: dict[str, Any] | str) -> Callable[[Any, Any], Awaitable[ElicitResult]]:
    """A person who notes the forms and gives these answers in turn; a text is an action without an answer."""
    left = list(answers)

    async def callback(context: Any, params: Any) -> ElicitResult:
        forms.append(params)
        given = left.pop(0)
        if isinstance(given, str):
            return ElicitResult(action=given)  # type: ignore[arg-type]
        return ElicitResult(action="accept", content=given)

    return callback
