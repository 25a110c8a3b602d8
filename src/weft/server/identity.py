"""Callers and their scopes. A gate identifies the caller of every request.

Without keys the API is open to programs on this machine and to nobody else: the connection must come in on a loopback
address, and the request must name one. A web page of another site, opened in a browser on this
machine, is refused by its ``Origin`` or host name, and so is a page of another server on this machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from weft.errors import NotAllowed
from weft.server.settings import PUBLIC_URL, public_url

LISTENS = "weft.listens"
"""Is in the ASGI scope when the caller of an open live connection is identified again, which is no new request."""
DEFAULT_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Scheme, host and port of a server."""

    scheme: str
    host: str
    port: int

    @property
    def is_private(self) -> bool:
        """Return whether nobody can listen on the way to this server: it is reached by TLS, or on this machine."""
        return self.scheme == "https" or self.is_local

    @property
    def is_local(self) -> bool:
        """Return whether the server is on this machine."""
        return is_loopback(self.host)


class AccessScope(StrEnum):
    """What a caller may do. ``admin`` includes all other scopes, which are separate."""

    READ = "read"
    START = "start"
    DECIDE = "decide"
    OPERATE = "operate"
    WORK = "work"
    ADMIN = "admin"


class Identity(msgspec.Struct, frozen=True):
    """The caller of one request. ``subject`` is its name."""

    subject: str
    scopes: frozenset[AccessScope]
    tenant: str = ""
    """The tenant whose runs the caller sees. Empty for an operator, who sees all runs."""
    groups: frozenset[str] | None = None
    """The groups for which the caller may answer questions. None if it is not identified and may use any name."""

    @property
    def name(self) -> str:
        """Return the name for logs and limits. It has the tenant, because two tenants may have the same subject."""
        return f"{self.tenant}/{self.subject}"

    def may(self, scope: AccessScope) -> bool:
        """Return whether the caller has a scope."""
        return scope in self.scopes or AccessScope.ADMIN in self.scopes


class Gate(Protocol):
    """Identifies the callers of requests."""

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        """Return the caller, from the ASGI scope and headers by lower-case name. Raises NotAllowed, RequestRefused."""
        ...


LOCAL_CALLER = Identity("local", frozenset({AccessScope.ADMIN}))
NOBODY = Identity("", frozenset())
"""The caller of a route that needs no identity."""


class LoopbackGate:
    """A gate without keys. Programs on this machine may do everything, others nothing."""

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        address = (scope.get("server") or ("", None))[0]
        # A socket in the file system has no host. The file system decides who may open it.
        if address and not is_loopback(address) and scope["server"][1] is not None:
            raise NotAllowed(
                "This server has no keys, so it answers on loopback addresses only.",
                hint="Create a key: weft keys create",
            )
        host = headers.get("host", "")
        if host and not is_loopback(_hostname(f"//{host}")):
            raise NotAllowed(f"{host[:100]!r} is not a name of this machine.", hint="Use localhost or 127.0.0.1.")
        refuse_other_origin(scope, headers)
        return LOCAL_CALLER


def refuse_forgery(scope: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Refuse a request that a page of another site may have made with the cookie of its visitor. Raises NotAllowed.

    Whatever changes something, and every WebSocket, must say which page it comes from, as all browsers do.
    """
    refuse_other_origin(scope, headers)
    reads = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
    if not reads and "origin" not in headers:
        raise NotAllowed(
            "A request with a session must have an Origin.", hint="Programs send Authorization: Bearer KEY."
        )


def refuse_other_origin(scope: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Refuse a request of a page of another site. Raises NotAllowed."""
    origin = headers.get("origin")
    if origin is not None and parse_origin(origin) not in own_origins(scope, headers):
        raise NotAllowed(
            f"A page of {origin[:100]!r} may not use this server.",
            hint=f"Create keys, or set {PUBLIC_URL} if the page is from this server.",
        )


def own_origins(scope: Mapping[str, Any], headers: Mapping[str, str]) -> set[Origin]:
    """Return scheme, host and port of this server, as the request names it and as its public URL does."""
    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "http"), scope.get("scheme", "http"))
    origins = (parse_origin(f"{scheme}://{headers.get('host', '')}"), parse_origin(public_url()))
    return {origin for origin in origins if origin is not None}


def page_origin(scope: Mapping[str, Any], headers: Mapping[str, str]) -> Origin | None:
    """Return the origin of the page that made a request, or of the server, if the request has none."""
    own = headers.get("origin")
    scheme = scope.get("scheme", "http")
    return parse_origin(own if own is not None else f"{scheme}://{headers.get('host', '')}")


@lru_cache(maxsize=256)
def parse_origin(url: str) -> Origin | None:
    """Return scheme, host and port of a URL; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    return Origin(parts.scheme, parts.hostname, port) if parts.hostname else None


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _hostname(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""
