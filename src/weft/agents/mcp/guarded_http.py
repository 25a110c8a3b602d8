"""Requests to an MCP server over HTTP, through the guard that all HTTP steps have.

The package reports a lost connection by cancelling whoever waits. So every request that cannot be answered gets an
answer here: a JSON-RPC error that says whether the server may have acted on it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import msgspec
from yarl import URL

from weft.steps.http.addresses import Allowed, allowed_here, parse_ip_address
from weft.steps.http.guard import Guard, connector, refused_in, system_lookup

UNSENT, LOST = "unsent", "lost"
STAND_IN_CODE = -32_050
BODY_BYTES_MAX = 16 * 1024 * 1024
ERROR_BYTES_MAX = 64 * 1024
CONNECT_SECONDS = 30.0
IDLE_SECONDS = 15.0
"""How long a connection that nobody uses is kept."""
_TEMPORARY = (429, 503)
_IN_DOUBT = (408, 500, 502, 504)
_encode = msgspec.json.Encoder().encode


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of one MCP client. ``mark`` is in every error that was made here, and nobody else knows it."""

    def __init__(self, name: str, url: str) -> None:
        self.mark = secrets.token_hex(8)
        self._name = name
        self._session = aiohttp.ClientSession(
            connector=connector(Guard(_allowed_addresses(url), system_lookup), IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            trust_env=False,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        asked = _request_id(body)
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "accept-encoding")}
        try:
            response = await self._session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers={**headers, "accept-encoding": "identity"},
                data=body,
                allow_redirects=False,
            )
        except aiohttp.ClientError as error:
            return self._no_answer(request, asked, _sent(error), _reason(error))
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status < 400 and kind == "text/event-stream":
            return httpx2.Response(
                response.status, headers=_headers(response), stream=_Events(self, response, asked), request=request
            )
        return await self._read_whole(request, response, asked)

    async def _read_whole(
        self, request: httpx2.Request, response: aiohttp.ClientResponse, asked: str | int | None
    ) -> httpx2.Response:
        """Return an answer that is not a stream, read up to a limit."""
        most = BODY_BYTES_MAX if response.status < 400 else ERROR_BYTES_MAX
        try:
            raw = await _read_body(response, most)
        except aiohttp.ClientError as error:
            return self._no_answer(request, asked, LOST, _reason(error))
        finally:
            response.close()
        if raw is None:
            return self._no_answer(request, asked, LOST, f"it answered with more than {most:,} bytes")
        if response.status >= 400 and asked is not None and not _is_error(raw):
            outcome = LOST if response.status in _IN_DOUBT else UNSENT if response.status in _TEMPORARY else ""
            return self._no_answer(request, asked, outcome, f"it answered with the status {response.status}")
        return httpx2.Response(response.status, headers=_headers(response), content=raw, request=request)

    def _no_answer(self, request: httpx2.Request, asked: str | int | None, outcome: str, why: str) -> httpx2.Response:
        if asked is None:
            raise httpx2.ConnectError(f"The MCP server {self._name} cannot be reached: {why}.", request=request)
        content = self.stand_in(asked, outcome, why)
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=content, request=request)

    def stand_in(self, asked: str | int | None, outcome: str, why: str) -> bytes:
        """Return the JSON-RPC error that stands for an answer that did not come."""
        data = {"mark": self.mark, "outcome": outcome}
        error = {"code": STAND_IN_CODE, "message": why, "data": data}
        return _encode({"jsonrpc": "2.0", "id": asked, "error": error})

    async def aclose(self) -> None:
        await self._session.close()


class _Events(httpx2.AsyncByteStream):
    """The body of an answer that is a stream of events. A stream that breaks ends with an error for its request."""

    def __init__(self, transport: GuardedTransport, response: aiohttp.ClientResponse, asked: str | int | None) -> None:
        self._transport = transport
        self._response = response
        self._asked = asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, why = 0, ""
        try:
            async for piece in self._response.content.iter_any():
                size += len(piece)
                if size > BODY_BYTES_MAX:
                    why = f"it answered with more than {BODY_BYTES_MAX:,} bytes"
                    break
                yield piece
        except aiohttp.ClientError as error:
            why = _reason(error)
        if why and self._asked is not None:
            yield b"\n\nevent: message\ndata: " + self._transport.stand_in(self._asked, LOST, why) + b"\n\n"

    async def aclose(self) -> None:
        self._response.close()


async def _read_body(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    found = bytearray()
    async for piece in response.content.iter_any():
        found += piece
        if len(found) > most:
            return None
    return bytes(found)


def _allowed_addresses(url: str) -> Allowed:
    """Return the addresses that may be called. A program may name a server on this machine."""
    here = allowed_here()
    host = (urlsplit(url).hostname or "").lower()
    address = parse_ip_address(host)
    if address is not None and address.is_loopback:
        return msgspec.structs.replace(here, networks=(*here.networks, ip_network(address)))
    return msgspec.structs.replace(here, hosts=here.hosts | {host}) if host == "localhost" else here


def _sent(error: aiohttp.ClientError) -> str:
    return UNSENT if isinstance(error, aiohttp.ClientConnectorError) or refused_in(error) is not None else LOST


def _reason(error: aiohttp.ClientError) -> str:
    refused = refused_in(error)
    if refused is not None:
        return refused.message.rstrip(".")
    return f"the connection failed ({type(error).__name__})"


def _request_id(body: bytes) -> str | int | None:
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found.get("id") if isinstance(found, dict) and "method" in found else None


def _is_error(raw: bytes) -> bool:
    try:
        found: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("error"), dict)


def _headers(response: aiohttp.ClientResponse) -> list[tuple[str, str]]:
    left_out = ("content-length", "transfer-encoding", "content-encoding", "connection")
    return [(name, value) for name, value in response.headers.items() if name.lower() not in left_out]
