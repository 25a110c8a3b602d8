"""Connect only to allowed addresses. The address that was checked is the one that is used.

A name is refused if *any* of its addresses is refused, because any of them may be used. A name is not resolved again
between the check and the connection, so changing its address in between has no effect. Finally, every socket is checked
when it is made, however its address was found.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from weft.steps.http.addresses import ALLOW_VARIABLE, Address, Allowed, parse_ip_address
from weft.steps.http.failures import AddressRefused

Lookup = Callable[[str], Awaitable[list[str]]]
"""Returns the addresses of a name. Raises OSError if there are none."""

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_HINT = f"To allow it, add its address, network or name to {ALLOW_VARIABLE} where the engine runs."


def refused_host_error(host: str, address: Address | None = None) -> AddressRefused:
    """Return the error for a host that is not allowed."""
    shown = host[:100]
    at = f" ({address})" if address is not None and str(address) != host else ""
    return AddressRefused(f"{shown}{at} is not a public address, so it was not called.", hint=_HINT)


async def system_lookup(host: str) -> list[str]:
    """Resolve a name with the operating system."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class _SocketRefused(PermissionError):
    """A refused socket. An OSError, because aiohttp tries the next address of a host after one."""


class Guard(AbstractResolver):
    """Resolves names and makes sockets, and checks each address."""

    def __init__(self, allowed: Allowed, lookup: Lookup = system_lookup) -> None:
        self._allowed = allowed
        self._lookup = lookup
        self._by_name: set[Address] = set()
        """The non-public addresses of hosts that are allowed by name."""

    def check_literal(self, host: str) -> None:
        """Check a host that is an IP address, which is not resolved.

        Raises:
            AddressRefused: the address may not be called.
        """
        address = parse_ip_address(host)
        if address is not None and not self._allowed.address(address):
            raise refused_host_error(host, address)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve a name and check each of its addresses."""
        addresses = [ipaddress.ip_address(text) for text in await self._lookup(host)]
        if not addresses:
            raise OSError(f"{host} has no address")
        for address in addresses:
            if self._allowed.address(address):
                continue
            if not self._allowed.host(host):
                raise refused_host_error(host, address)
            self._by_name.add(address)
        return [_result(host, address, port) for address in addresses]

    async def close(self) -> None:
        """Do nothing, because there is nothing to close."""

    def socket_for(self, info: tuple[Any, ...]) -> socket.socket:
        """Make the socket for one attempt to connect."""
        family, kind, protocol, _, place = info
        address = parse_ip_address(str(place[0]))
        if address is None or not (self._allowed.address(address) or address in self._by_name):
            raise _SocketRefused(str(place[0]))
        return socket.socket(family=family, type=kind, proto=protocol)


def refused_in(error: BaseException) -> AddressRefused | None:
    """Return the refusal that caused a connection error, if there is one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefused):
            return cause
        if isinstance(cause, _SocketRefused):
            return refused_host_error(str(cause))
        cause = cause.__cause__
    return None


def connector(guard: Guard, idle_seconds: float) -> aiohttp.TCPConnector:
    """Return a connector without a limit, so that a server that hangs cannot use up the connections of others.

    The slots of the worker limit the number of connections. Those without a request are closed after ``idle_seconds``.
    """
    kept: dict[str, Any] = {"keepalive_timeout": idle_seconds} if idle_seconds else {"force_close": True}
    return aiohttp.TCPConnector(resolver=guard, socket_factory=guard.socket_for, use_dns_cache=False, limit=0, **kept)


def _result(host: str, address: Address, port: int) -> ResolveResult:
    family = socket.AF_INET if isinstance(address, ipaddress.IPv4Address) else socket.AF_INET6
    return ResolveResult(hostname=host, host=str(address), port=port, family=family, proto=0, flags=_NUMERIC)
