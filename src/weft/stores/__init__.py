"""Stores: where everything durable goes. One port (``weft.ports.store``), one contract suite, a place per database."""

from __future__ import annotations

from weft.errors import UsageError
from weft.ports.store import Store
from weft.stores.memory import MemoryStore

__all__ = ["open_store"]


def open_store(url: str, *, durability: str = "full") -> Store:
    """The store that a URL names, not connected yet. Raises UsageError, with what to write instead."""
    scheme, separator, _ = url.partition("://")
    match scheme if separator else "":
        case "memory":
            return MemoryStore(url)
        case "sqlite":
            # SQLite's library is not paid for by those who keep everything in memory.
            from weft.stores.sqlite import SqliteStore  # noqa: PLC0415

            return SqliteStore(url, durability=durability)
        case "postgresql" | "postgres" | "redis" | "rediss":
            raise UsageError(
                f"Weft cannot keep runs in {scheme} yet.", hint='Use "sqlite:///weft.db": one file, several processes.'
            )
        case _:
            raise UsageError(
                f"{url!r} names no store.",
                hint='Use "sqlite:///weft.db", "sqlite:////absolute/path.db" or "memory://".',
            )
