"""Send the page of the web UI and its files. They are public and hold no data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version

from weft.server.problems import RequestRefused
from weft.server.request import ApiCall, ApiReply
from weft.server.web.base import base_of, render_index
from weft.server.web.files import WebFile, accepts_html
from weft.server.web.policy import new_nonce, page_headers

TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
NOT_BUILT = "The web UI is not built. Build it in a clone of Weft with: make ui"
ABOUT = """\
Weft {version}

People open this address in a browser. Programs use the API:
  openapi.json   all routes
  metrics        numbers for Prometheus
  healthz        the process answers
  readyz         runs can be started and continue
"""


async def home(call: ApiCall) -> ApiReply:
    """Send the page of the web UI to a browser, and a short text to programs."""
    if not accepts_html(call.headers.get("accept", "")):
        return ApiReply(ABOUT.format(version=version("weft")).encode(), headers={"content-type": TEXT})
    if call.services.web.index is None:
        return ApiReply(f"{NOT_BUILT}\n".encode(), headers={"content-type": TEXT})
    return _page(call, call.services.web.index)


async def screen(call: ApiCall) -> ApiReply:
    """Send the page of the web UI, which shows the screen of this address. Programs get a 404."""
    if not accepts_html(call.headers.get("accept", "")):
        raise RequestRefused(
            404,
            "request.unknown_route",
            "This is an address of the web UI, which answers browsers only.",
            hint="See /openapi.json for all paths.",
        )
    if call.services.web.index is None:
        raise RequestRefused(404, "request.unknown_route", NOT_BUILT)
    return _page(call, call.services.web.index)


def _page(call: ApiCall, template: str) -> ApiReply:
    nonce = new_nonce()
    text = render_index(template, base_of(call.scope, call.path), nonce)
    return ApiReply(text.encode(), headers={"content-type": HTML, **page_headers(nonce)})


def file_endpoint(file: WebFile) -> Callable[[ApiCall], Awaitable[ApiReply]]:
    """Return the endpoint that sends a file."""
    return partial(_send_file, file)


async def _send_file(file: WebFile, call: ApiCall) -> ApiReply:
    content, encoding = file.content(call.headers.get("accept-encoding", ""))
    headers = {"content-type": file.media, "cache-control": file.cache}
    if file.plain is None:
        headers["vary"] = "accept-encoding"
    if encoding:
        headers["content-encoding"] = encoding
    return ApiReply(content, headers=headers)
