"""What a Redis server says about itself, and which servers are refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.errors import UsageError
from weft.ports.wal_server import ServerFacts

VERSION_MIN: Final = (7, 0)
KEEPS_EVERYTHING: Final = "noeviction"
SECTIONS: Final = ("server", "memory", "persistence", "replication")


NO_FSYNC_DURING_REWRITES: Final = " except during rewrites"
"""Added to ``appendfsync`` if the server leaves it to the system while it rewrites its AOF."""


def facts_from(info: str, settings: Mapping[str, str]) -> ServerFacts:
    """Return the facts in the text of INFO and in settings. What they leave out is unknown."""
    fields = _read_fields(info)
    protocol = fields.get("redis_version")
    aof = fields.get("aof_enabled")
    replicas = fields.get("connected_slaves", "")
    appendfsync = settings.get("appendfsync")
    if appendfsync is not None and appendfsync != "no" and settings.get("no-appendfsync-on-rewrite") == "yes":
        appendfsync += NO_FSYNC_DURING_REWRITES
    return ServerFacts(
        server=fields.get("server_name", "redis" if protocol else None),
        version=fields.get("valkey_version", protocol),
        protocol=protocol,
        role=fields.get("role"),
        aof=None if aof is None else aof == "1",
        appendfsync=appendfsync,
        replicas=int(replicas) if replicas.isdigit() else None,
        maxmemory_policy=fields.get("maxmemory_policy"),
    )


def refuse_unfit_server(facts: ServerFacts, safe_url: str) -> None:
    """Refuse a server that cannot hold WALs. Raises UsageError. What is unknown is not refused."""
    if facts.protocol is not None and _version_numbers(facts.protocol) < VERSION_MIN:
        raise UsageError(
            f"The server at {safe_url} is Redis {facts.protocol}; the hot path needs Redis 7.0 or later, or Valkey.",
            hint="Upgrade the server, or unset `hot`.",
        )
    if facts.maxmemory_policy not in {None, KEEPS_EVERYTHING}:
        raise UsageError(
            f"The server at {safe_url} evicts keys when its memory is full (maxmemory-policy is "
            f"{facts.maxmemory_policy}), so it would drop steps that were acknowledged.",
            hint="Set maxmemory-policy to noeviction, use a Redis server of its own for Weft, or unset `hot`.",
        )


def _read_fields(info: str) -> Mapping[str, str]:
    lines = (line.partition(":") for line in info.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, separator, value in lines if separator}


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:2])
