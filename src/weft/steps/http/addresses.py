"""Decide which addresses may be called. Pure.

Everything except public unicast is refused: private, loopback, link-local (cloud metadata), shared,
reserved, documentation, multicast, and every IPv6 form that carries an IPv4 address inside (mapped, compatible, NAT64,
6to4, Teredo). The tables are our own, because the meaning of ``is_global`` in ``ipaddress`` varies by Python release.

``WEFT_HTTP_ALLOW="127.0.0.1,10.0.0.0/8,billing.internal"`` allows addresses, networks and host names.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

import msgspec

from weft.errors import UsageError
from weft.settings import variable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

ALLOW_VARIABLE = "WEFT_HTTP_ALLOW"

_SPECIAL_V4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    ipaddress.IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20")
)  # fmt: skip

_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?", re.IGNORECASE)
_LEGACY = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)


@lru_cache(maxsize=1024)
def is_public(address: Address) -> bool:
    """Return whether an address is public unicast."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _UNICAST_V6 and not any(address in network for network in _SPECIAL_V6)


@lru_cache(maxsize=1024)
def parse_ip_address(host: str) -> Address | None:
    """Parse a host that is an IP address, with or without a zone (``fe80::1%eth0``). Returns None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_disguised(host: str) -> bool:
    """Return whether the system would read a host name as a number: 2130706433, 0x7f.1, 0177.0.0.1."""
    return parse_ip_address(host) is None and _LEGACY.fullmatch(host.rstrip(".")) is not None


def is_host_name(host: str) -> bool:
    """Return whether a host is a plain name, which may be resolved."""
    return len(host) <= 254 and _NAME.fullmatch(host) is not None and not is_disguised(host)


class Allowed(msgspec.Struct, frozen=True):
    """Addresses that may be called although they are not public."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    def address(self, address: Address) -> bool:
        """Return whether connecting to this address is allowed."""
        return is_public(address) or any(address in network for network in self.networks)

    def host(self, host: str) -> bool:
        """Return whether the host is allowed by name, whatever it resolves to."""
        return host.lower().rstrip(".") in self.hosts


def parse_allowed(text: str) -> Allowed:
    """Read a list of addresses, networks and host names, separated by commas.

    Raises:
        UsageError: an entry is malformed.
    """
    networks: list[Network] = []
    hosts: set[str] = set()
    for entry in filter(None, (part.strip().lower() for part in text.split(","))):
        try:
            networks.append(ipaddress.ip_network(entry))
            continue
        except ValueError:
            host = entry.rstrip(".")
        if not is_host_name(host):
            raise UsageError(
                f'{ALLOW_VARIABLE}: "{entry}" is not an address, network or host name.',
                hint='Write it like "127.0.0.1,10.0.0.0/8,billing.internal"; a network without host bits, no ports.',
            )
        hosts.add(host)
    return Allowed(tuple(networks), frozenset(hosts))


def allowed_here() -> Allowed:
    """Return the addresses that the environment of this process allows."""
    return parse_allowed(variable(ALLOW_VARIABLE))
