"""The server that holds write-ahead logs: what the hot store needs of Redis, and nothing else.

A *WAL* is the write-ahead log of one host: numbered entries 1, 2, 3 and so on, and a head that says which was the last.
The server is allowed to lose data, so it holds nothing that exists only there for longer than a moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class WalBroken(Exception):
    """An entry was not acknowledged, so its WAL must never be written again. ``reason`` says what came instead.

    It may be stored nevertheless. Only the hot store sees this error: it writes the batch to the durable store.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says about itself. None: it does not say."""

    server: str | None = None
    """Its name, such as "redis" or "valkey"."""
    version: str | None = None
    """The version of its own name. ``protocol`` is the version of Redis whose commands it knows."""
    protocol: str | None = None
    role: str | None = None
    """"master" or "slave"."""
    aof: bool | None = None
    appendfsync: str | None = None
    """"always", "everysec" or "no". Only of importance with ``aof``."""
    replicas: int | None = None
    maxmemory_policy: str | None = None


class IdentifiedServer(Protocol):
    """A server that says what it is, and which deployment it belongs to."""

    url: str
    """Where it is, for people, without a password."""

    async def facts(self) -> ServerFacts:
        """Ask the server about itself. Raises Unavailable."""
        ...

    async def identity(self) -> str | None:
        """Return the value that marks this server's data, or None if it has none. Raises Unavailable."""
        ...

    async def set_identity(self, value: str, *, replace: str | None = None) -> str:
        """Mark the data with a value if it has the value ``replace``, or none if that is None.

        Returns the value that holds now, empty if there is none. Raises Unavailable, also if nothing can be written.
        """
        ...

    async def close(self) -> None:
        """Close all connections. What is under way fails."""
        ...


class WalServer(IdentifiedServer, Protocol):
    """Holds WALs. ``append`` and ``trim`` are for the one WAL that was begun last through this object."""

    async def begin(self, wal: int) -> None:
        """Create an empty WAL under a number that was never used. From here on, this is the WAL to append to.

        Raises WalBroken if it exists already or the server refuses it, Unavailable if there is no answer.
        """
        ...

    async def append(self, wal: int, n: int, entry: bytes, trim: int | None) -> None:
        """Add entry ``n``, which must follow the last one, and remove the entries up to ``trim``, if given.

        The entry is acknowledged when this returns. Never tries again by itself.

        Raises:
            WalBroken: the server said anything else, or nothing in time. The entry may or may not be there.
        """
        ...

    async def trim(self, wal: int, upto: int) -> None:
        """Remove the entries up to number ``upto``. Raises WalBroken as ``append`` does."""
        ...

    async def seal(self, wal: int) -> int | None:
        """End a WAL for ever: no append to it succeeds from here on. Returns the number of its last entry.

        Returns None if there is no such WAL. Sealing twice is the same as once. Raises Unavailable.
        """
        ...

    async def read(self, wal: int) -> Sequence[tuple[int, bytes]]:
        """Return the numbers and bytes of all entries of a WAL, in order; none if there is no such WAL.

        Raises Unavailable.
        """
        ...

    async def delete(self, wal: int) -> None:
        """Remove a WAL. Raises Unavailable."""
        ...
