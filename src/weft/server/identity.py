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
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from weft.errors import NotAllowed
from weft.server.settings import PUBLIC_URL, public_url

DEFAULT_PORTS = {"http": 80, "https": 443}


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
        origin = headers.get("origin")
        if origin is not None and not _is_same_origin(origin, scope, host):
            raise NotAllowed(
                f"A page of {origin[:100]!r} may not use this server.",
                hint=f"Create keys, or set {PUBLIC_URL} if the page is from this server.",
            )
        return LOCAL_CALLER


def _is_same_origin(origin: str, scope: Mapping[str, Any], host: str) -> bool:
    """Return whether a page came from this server: the same scheme, host and port, or those of its public URL."""
    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "http"), scope.get("scheme", "http"))
    page = _origin_of(origin)
    return page is not None and page in (_origin_of(f"{scheme}://{host}"), _origin_of(public_url()))


@lru_cache(maxsize=256)
def _origin_of(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a URL; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


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
