"""Callers and their scopes. A gate identifies the caller of every request.

Without keys the API is open to programs on this machine and to nobody else: the connection must come in on a loopback
address, and the request must have been meant for one. A page of another site, opened in a browser here, names itself
in ``Origin`` or brings its own host name, and is turned away; so is a page of another server on this machine.
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
    """What a caller may do. Each is separate; ``admin`` includes all of them."""

    READ = "read"
    START = "start"
    DECIDE = "decide"
    OPERATE = "operate"
    WORK = "work"
    ADMIN = "admin"


class Identity(msgspec.Struct, frozen=True):
    """The caller of one request. ``subject`` names it in logs and counts its requests."""

    subject: str
    scopes: frozenset[AccessScope]
    tenant: str = ""
    """The tenant whose runs it sees. Empty: it belongs to the operator and sees all."""
    groups: frozenset[str] | None = None
    """The groups for which it may answer questions. None: not identified, so the name it gives is accepted."""

    @property
    def name(self) -> str:
        """Return the name for logs and limits, with the tenant: two tenants may have a subject of the same name."""
        return f"{self.tenant}/{self.subject}"

    def may(self, scope: AccessScope) -> bool:
        return scope in self.scopes or AccessScope.ADMIN in self.scopes


class Gate(Protocol):
    """Turns the headers of a request into an identity."""

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        """Return the caller, from the ASGI scope and headers by lower-case name. Raises NotAllowed, RequestRefused."""
        ...


EVERYBODY_HERE = Identity("local", frozenset({AccessScope.ADMIN}))
NOBODY = Identity("", frozenset())
"""The caller of a route that needs no identity."""


class OpenHere:
    """A gate without keys: programs on this machine may do everything, others nothing."""

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        address = (scope.get("server") or ("", None))[0]
        # A socket in the file system has no host; who may open it is for the file system to say.
        if address and not is_loopback(address) and scope["server"][1] is not None:
            raise NotAllowed(
                "This server has no keys, so it answers on loopback addresses only.", hint="Make keys first."
            )
        host = headers.get("host", "")
        if host and not is_loopback(_hostname(f"//{host}")):
            raise NotAllowed(f"{host[:100]!r} is not a name of this machine.", hint="Ask for localhost or 127.0.0.1.")
        origin = headers.get("origin")
        if origin is not None and not _is_own(origin, scope, host):
            raise NotAllowed(
                f"A page of {origin[:100]!r} may not use this server.",
                hint=f"Without keys only programs on this machine may, and pages of this server ({PUBLIC_URL}).",
            )
        return EVERYBODY_HERE


def _is_own(origin: str, scope: Mapping[str, Any], host: str) -> bool:
    """Return whether a page came from this server: the same scheme, host and port, or those of its public URL."""
    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "http"), scope.get("scheme", "http"))
    found = _place(origin)
    return found is not None and found in (_place(f"{scheme}://{host}"), _place(public_url()))


@lru_cache(maxsize=256)
def _place(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a URL; None if it is not one."""
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
