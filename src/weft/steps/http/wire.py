"""Send a request over the network: connect to a checked address, follow redirects, and read a limited response."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable
from types import SimpleNamespace

import aiohttp
from aiohttp import http_exceptions
from multidict import CIMultiDictProxy
from yarl import URL

from weft.core.durations import format_ms
from weft.errors import BadValue, LimitExceeded
from weft.steps.http.addresses import is_disguised, is_host_name, parse_ip_address
from weft.steps.http.exchange import HttpLimits, HttpRequest, HttpResponse, url_without_secrets
from weft.steps.http.failures import AddressRefused, HttpFailed, HttpUnavailable
from weft.steps.http.guard import Guard, connector, refused_host_error, refused_in
from weft.steps.http.inflate import ENCODINGS, decoder
from weft.steps.task_permissions import check_permitted

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# All other headers are meant only for the original receiver.
_KEPT_ACROSS_ORIGINS = frozenset({"accept", "accept-language", "user-agent"})
LARGE_BYTES = 512 * 1024
_NOT_IN_URLS = re.compile(r"[\x00-\x1f\\\x7f]")
_WITHOUT_BODY = ("content-type", "content-encoding", "content-language")

OnData = Callable[[bytes], bool]
"""Gets a piece of a successful response, and returns whether it wants more."""


class Wire:
    """Sends requests over a pool of connections."""

    def __init__(self, guard: Guard, limits: HttpLimits) -> None:
        self._guard = guard
        self._limits = limits
        self._session = aiohttp.ClientSession(
            connector=connector(guard, limits.idle_seconds),
            cookie_jar=aiohttp.DummyCookieJar(),  # a cookie of one run must not be sent for another
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # ``send`` has one for the whole call
            auto_decompress=False,
            trust_env=False,
            max_line_size=limits.header_bytes_max,
            max_field_size=limits.header_bytes_max,
            max_headers=limits.header_count_max,
            skip_auto_headers=("Content-Type",),
            trace_configs=[_tracing()],
        )

    async def close(self) -> None:
        await self._session.close()

    async def send(self, request: HttpRequest, on_data: OnData | None = None) -> HttpResponse:
        """Send a request, as described at ``HttpClient.send``."""
        progress = _Progress(on_data)
        try:
            async with asyncio.timeout(request.timeout_ms / 1000):
                return await self._follow(request, progress)
        except TimeoutError as error:
            raise HttpUnavailable(
                f"{request.shown()} took longer than {format_ms(request.timeout_ms)}.", in_doubt=progress.sent
            ) from error

    async def _follow(self, request: HttpRequest, progress: _Progress) -> HttpResponse:
        url = self._checked(request.url)
        current = request
        for left in range(self._limits.redirects_max, -1, -1):
            found = await self._exchange(current, url, progress)
            if isinstance(found, HttpResponse):
                return found
            if not self._limits.redirects_max:
                location = found.location
                shown = request.shown_url(location if "//" in location else f"{url.origin()}/{location.lstrip('/')}")
                raise HttpFailed(
                    f"{request.shown()} answered {found.status} and redirects to {shown}.",
                    hint="Redirects are not followed here: use the address of the service itself.",
                )
            if not left:
                break
            target = self._checked(str(found.location), base=url)
            current = _redirected(current, found.status, url, target)
            url = target
        raise HttpFailed(f"{request.shown()} was redirected more than {self._limits.redirects_max} times.")

    def _checked(self, text: str, base: URL | None = None) -> URL:
        """Return the URL to connect to, after checking it. Names are checked when they are resolved."""
        try:
            if _NOT_IN_URLS.search(text):
                raise ValueError("characters that a URL cannot have")  # noqa: TRY301 - reported like an error of yarl
            url = base.join(URL(text)) if base is not None else URL(text)
            host, port = url.raw_host, url.port
        except (ValueError, IndexError) as error:  # yarl raises an IndexError for "http://[]x@"
            raise _bad_address(base, "is not a URL") from error
        if url.scheme not in ("http", "https"):
            raise _bad_address(base, f'begins with "{url.scheme[:20]}:"' if url.scheme else "is not a URL")
        if url.raw_user is not None or url.raw_password is not None:
            raise _bad_address(base, "contains a user name or password")
        if not host or not port:
            raise _bad_address(base, "names no host")
        if is_disguised(host):
            raise refused_host_error(host)
        if parse_ip_address(host) is None and not is_host_name(host):
            raise _bad_address(base, "names no host")
        self._guard.check_literal(host)
        check_permitted("host", f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        return url.with_fragment(None)

    async def _exchange(self, request: HttpRequest, url: URL, progress: _Progress) -> HttpResponse | _Redirect:
        headers = {"User-Agent": "weft", "Accept": "*/*", **_title_names(request.headers), "Accept-Encoding": ENCODINGS}
        try:
            response = await self._session.request(
                request.method,
                url,
                headers=headers,
                data=_as_payload(request.body),
                allow_redirects=False,
                trace_request_ctx=progress,
            )
            try:
                return await self._read(response, request, progress.on_data)
            finally:
                response.close() if not response.content.at_eof() else response.release()
        except aiohttp.ClientError as error:
            raise _wire_failure(error, HttpRequest.shown(request)) from error

    async def _read(
        self, response: aiohttp.ClientResponse, request: HttpRequest, on_data: OnData | None
    ) -> HttpResponse | _Redirect:
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location:
            return _Redirect(response.status, location)
        bare = request.method == "HEAD" or response.status in (101, 204, 205, 304)
        body = b"" if bare else await self._body(response, request, on_data)
        return HttpResponse(
            status=response.status,
            reason=_readable(response.reason or ""),
            headers=_lower_names(response.headers),
            body=body,
            request=request,
        )

    async def _body(self, response: aiohttp.ClientResponse, request: HttpRequest, on_data: OnData | None) -> bytes:
        ok = 200 <= response.status < 300
        bytes_max = self._limits.body_bytes_max if ok else self._limits.error_bytes_max
        encoding = decoder(response.headers.get("Content-Encoding", ""))
        refuses = ok and not request.is_cut
        if refuses and (response.content_length or 0) > bytes_max:
            raise _too_big(request, bytes_max)
        body, size = bytearray(), 0
        async for chunk in response.content.iter_any():
            for piece in encoding.feed(chunk):
                size += len(piece)
                if size > bytes_max and refuses:
                    raise _too_big(request, bytes_max)
                if not ok or on_data is None:
                    body += piece
                elif not on_data(piece):
                    return b""
                if size > bytes_max:
                    return bytes(body[:bytes_max])
        encoding.finish()
        return bytes(body)


class _Progress:
    """How far a request got, and who gets its response. Before it was sent, it cannot have had an effect."""

    def __init__(self, on_data: OnData | None) -> None:
        self.sent = False
        self.on_data = on_data


def _tracing() -> aiohttp.TraceConfig:
    async def note(_session: object, context: SimpleNamespace, _headers: object) -> None:
        context.trace_request_ctx.sent = True

    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(note)
    return tracing


def _as_payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """Return the body as aiohttp wants it: a large one is a file, which it sends in pieces."""
    return io.BytesIO(body) if body is not None and len(body) > LARGE_BYTES else body


class _Redirect:
    def __init__(self, status: int, location: str) -> None:
        self.status = status
        self.location = location


def _redirected(request: HttpRequest, status: int, source: URL, target: URL) -> HttpRequest:
    """Return the request that follows a redirect, with the method and body that RFC 9110 asks for.

    To another scheme, host or port, neither credentials nor the body are sent.
    """
    method, body, headers = request.method, request.body, request.headers
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name not in _WITHOUT_BODY}
    if (target.scheme, target.raw_host, target.port) != (source.scheme, source.raw_host, source.port):
        body = None
        headers = {name: value for name, value in headers.items() if name in _KEPT_ACROSS_ORIGINS}
    return HttpRequest(method=method, url=str(target), headers=headers, body=body, timeout_ms=request.timeout_ms)


def _wire_failure(error: aiohttp.ClientError, what: str) -> HttpFailed | AddressRefused | BadValue:
    """Translate a connection error into the error of the step."""
    refused = refused_in(error)
    if refused is not None:
        return refused
    match error:
        case aiohttp.InvalidURL():
            return BadValue(f"{what}: the URL cannot be called.")
        case aiohttp.ClientConnectorCertificateError():
            return HttpFailed(f"{what}: the certificate is not valid for this host.", hint="Nothing was sent.")
        case aiohttp.ClientConnectorError():
            why = error.os_error.strerror or str(error.os_error) or type(error.os_error).__name__
            return HttpUnavailable(f"{what} could not connect: {why}.")
        case aiohttp.ClientResponseError():
            return HttpFailed(f"{what} got a response that is not HTTP: {_header_line(error.message)}.")
        case aiohttp.ClientPayloadError() if _is_garbled(error):
            return HttpFailed(f"{what} got a response that is not HTTP: {_header_line(str(error))}.")
        case aiohttp.ClientPayloadError():
            return HttpUnavailable(f"{what}: the response is incomplete.", in_doubt=True)
        case _:
            return HttpUnavailable(f"{what}: the connection was lost ({type(error).__name__}).", in_doubt=True)


def _is_garbled(error: aiohttp.ClientPayloadError) -> bool:
    """Return whether the body was malformed, not just incomplete."""
    cut = (http_exceptions.ContentLengthError, http_exceptions.TransferEncodingError)
    return isinstance(error.__cause__, http_exceptions.BadHttpMessage) and not isinstance(error.__cause__, cut)


def _bad_address(base: URL | None, why: str) -> BadValue | HttpFailed:
    if base is not None:
        return HttpFailed(f"{url_without_secrets(str(base))} redirected to a URL that {why}.")
    return BadValue(f"The URL {why}.", hint="Write https://host/path, and send credentials in a header.")


def _too_big(request: HttpRequest, bytes_max: int) -> LimitExceeded:
    return LimitExceeded(
        f"{request.shown()} answered with more than {bytes_max:,} bytes.",
        hint="Let the server store the data and answer with its URL.",
    )


def _title_names(headers: dict[str, str]) -> dict[str, str]:
    return {name.title(): value for name, value in headers.items()}


def _lower_names(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers.items():
        key, text = _readable(name).lower(), _readable(value)
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _readable(text: str) -> str:
    """Replace lone surrogates, which represent header bytes that were not UTF-8. No store accepts them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _header_line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return "".join(char for char in _readable(first) if char.isprintable())[:200].rstrip(".:")
