"""HTTP requests and responses as values, and URLs without secrets for messages. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

from weft.core.values import VALUE_BYTES_MAX
from weft.errors import BadValue

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TIMEOUT_MS = 30_000
TIMEOUT_MS_MAX = 3_600_000
URL_CHARS_MAX = 8_192
SENT_HEADER_BYTES_MAX = 64 * 1024

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
# These headers frame the message or name its receiver. If users could set them, one message could be read as two.
_OURS = frozenset({
    "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
    "accept-encoding",
})  # fmt: skip


class HttpLimits(msgspec.Struct, frozen=True):
    """The limits of a response."""

    body_bytes_max: int = VALUE_BYTES_MAX
    """Counted after decompression."""
    error_bytes_max: int = 64 * 1024
    """How much of an unsuccessful response is read: enough for a message."""
    header_count_max: int = 128
    header_bytes_max: int = 8_190
    redirects_max: int = 5
    idle_seconds: float = 15.0
    """How long a connection is kept for the next request; 0: not at all."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request. Names of headers are lower case."""

    method: str
    url: str
    headers: dict[str, str] = {}
    body: bytes | None = None
    timeout_ms: int = TIMEOUT_MS
    """The time limit for everything: resolving the name, redirects, reading the whole response."""
    is_cut: bool = False
    """Whether only the beginning of a body that is too large is returned, and that is no error."""
    is_path_secret: bool = False
    """Whether messages leave out the path: whoever knows the URL of some receivers may send to them."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise BadValue(f'"{self.method}" is not an HTTP method.', hint=f"Use one of {', '.join(METHODS)}.")
        if not 0 < self.timeout_ms <= TIMEOUT_MS_MAX:
            raise BadValue(
                f"The timeout of {self.timeout_ms} ms is not valid.",
                hint="The timeout of an HTTP call is more than 0 s and at most 1h.",
            )
        if len(self.url) > URL_CHARS_MAX:
            raise BadValue(f"The URL has {len(self.url)} characters; the limit is {URL_CHARS_MAX}.")
        check_headers(self.headers)

    def shown(self) -> str:
        return f"{self.method} {self.shown_url(self.url)}"

    def shown_url(self, url: str) -> str:
        """Return the URL of this request, or one that it is redirected to, without what may be secret."""
        try:
            path = urlsplit(self.url).path if self.is_path_secret else ""
        except ValueError:
            path = ""
        return url_without_secrets(url.replace(path, "/…") if len(path) > 1 else url)


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A complete response. Names of headers are lower case; repeated ones are joined by a comma."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    request: HttpRequest

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def check_headers(headers: dict[str, str]) -> None:
    """Reject headers that would break or forge the message.

    Raises:
        BadValue: a name or value is invalid, or the client sets the header itself.
    """
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise BadValue(f"A header cannot be called {name[:60]!r}.", hint="Use letters, digits and dashes.")
        if name in _OURS or name.startswith("proxy-"):
            raise BadValue(f'The header "{name}" is set by the client itself.', hint="Remove the header.")
        if _CONTROL.search(value):
            raise BadValue(f'The header "{name}" contains a line break or control character.', hint="Remove it.")
    if sum(len(name) + len(value) for name, value in headers.items()) > SENT_HEADER_BYTES_MAX:
        raise BadValue("The headers are too long.", hint=f"The limit is {SENT_HEADER_BYTES_MAX} characters in total.")


def url_without_secrets(url: str) -> str:
    """Return a URL without the parts that may be secret: user, password and query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "a URL that cannot be read"
    host = f"[{host}]" if ":" in host else host
    text = f"{parts.scheme}://{host}{port}{parts.path}"
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= 200 else f"{text[:197]}..."
