"""From an alias to the wire that reaches its model.

A package adds a wire under the entry point ``weft.models``: a function that takes a ``WireParts`` and returns a
``ModelPort``. Its name is what ``app.model(api=…)`` names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import entry_points
from ipaddress import ip_network
from urllib.parse import urlsplit

import msgspec

from weft.agents.models.aliases import ModelAlias, ModelAliases
from weft.agents.models.chat import ChatWire
from weft.agents.models.chat_request import Load
from weft.agents.models.responses import ResponsesWire
from weft.agents.models.transport import LIMITS, ModelTransport
from weft.core.findings import did_you_mean
from weft.errors import UsageError
from weft.ports.clock import Clock
from weft.ports.models import ModelPort
from weft.steps.http.addresses import Allowed, allowed_here, parse_ip_address
from weft.steps.http.client import HttpClient

ENTRY_POINT = "weft.models"


class WireParts(msgspec.Struct, frozen=True):
    """What a wire is made of."""

    alias: ModelAlias
    transport: ModelTransport
    """Sends requests to the alias's own URL, and to no other."""
    load: Load
    """Returns the content of an image or file by its reference."""


def _chat(parts: WireParts) -> ModelPort:
    return ChatWire(parts.alias, parts.transport, parts.load)


def _responses(parts: WireParts) -> ModelPort:
    return ResponsesWire(parts.alias, parts.transport, parts.load)


WIRES: dict[str, Callable[[WireParts], ModelPort]] = {"chat": _chat, "responses": _responses}


class ModelPorts:
    """The wires of a host, made at first use. They belong to one event loop, and whoever made them closes them."""

    def __init__(self, aliases: ModelAliases, clock: Clock, get: Callable[[str], Awaitable[bytes]]) -> None:
        """``get`` returns the blob with a digest."""
        self.aliases = aliases
        self._clock = clock
        self._get = get
        self._ports: dict[str, tuple[ModelAlias, ModelPort]] = {}
        self._clients: list[HttpClient] = []

    def port(self, name: str) -> ModelPort:
        """Return the wire of an alias. Raises UsageError if there is no such model, or no such wire."""
        alias = self.aliases.get(name)
        known = self._ports.get(name)
        if known is not None and known[0] is alias:
            return known[1]
        client = HttpClient(_with_origin(alias.url), limits=LIMITS)
        self._clients.append(client)
        made = find_wire(alias)(WireParts(alias, ModelTransport(alias, client, self._clock), self._load))
        self._ports[name] = (alias, made)
        return made

    async def _load(self, ref: str) -> bytes:
        return await self._get(ref.removeprefix("cas://").removeprefix("sha256:"))

    async def close(self) -> None:
        """Close every connection."""
        clients, self._clients, self._ports = self._clients, [], {}
        for client in clients:
            await client.close()


def find_wire(alias: ModelAlias) -> Callable[[WireParts], ModelPort]:
    """Return what makes the wire of an alias. Raises UsageError."""
    found = WIRES.get(alias.api)
    if found is not None:
        return found
    packages = {entry.name: entry for entry in entry_points(group=ENTRY_POINT)}
    if alias.api in packages:
        made: Callable[[WireParts], ModelPort] = packages[alias.api].load()
        return made
    known = [*WIRES, *packages]
    raise UsageError(
        f'The model {alias.name} has api="{alias.api[:60]}", which is not known here.',
        hint=f"{did_you_mean(alias.api, known)} There are {', '.join(sorted(known))}.".strip(),
        code="model.unknown_api",
    )


def _with_origin(url: str) -> Allowed:
    """Return the allowed addresses with that of a model. Its client calls no other origin, and follows no redirect."""
    here = allowed_here()
    host = (urlsplit(url).hostname or "").lower().rstrip(".")
    address = parse_ip_address(host)
    if address is None:
        return msgspec.structs.replace(here, hosts=here.hosts | {host})
    return msgspec.structs.replace(here, networks=(*here.networks, ip_network(address)))
