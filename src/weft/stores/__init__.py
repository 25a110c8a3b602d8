"""Stores, which keep all durable data. One port (``weft.ports.store``), one contract suite, a package per database."""

from __future__ import annotations

from weft.errors import UsageError
from weft.extras import require
from weft.ports.store import Store
from weft.stores.memory import MemoryStore
from weft.stores.urls import blobs_url, shown_url

__all__ = ["blobs_url", "open_store", "shown_url"]


def open_store(url: str, *, durability: str = "full", blobs: str | None = None) -> Store:
    """Return the store for a URL, not connected yet. Raises UsageError with a hint if the URL names no store.

    ``blobs`` is the URL under which a Postgres store keeps large values. None keeps them in the database.
    """
    scheme, separator, _ = url.partition("://")
    if blobs is not None and scheme not in {"postgresql", "postgres"}:
        raise UsageError(
            f"The store {url} keeps its own blobs, so WEFT_BLOBS cannot be used with it.",
            hint="Unset WEFT_BLOBS, or keep runs in Postgres.",
        )
    match scheme if separator else "":
        case "memory":
            return MemoryStore(url)
        case "sqlite":
            # Imported here, so that an in-memory store does not need the SQLite library.
            from weft.stores.sqlite import SqliteStore  # noqa: PLC0415

            return SqliteStore(url, durability=durability)
        case "postgresql" | "postgres":
            return _postgres(url, durability, blobs)
        case "redis" | "rediss":
            raise UsageError(
                f"Weft cannot keep runs in {scheme} yet.",
                hint='Use "postgresql://user@host/database" or "sqlite:///weft.db".',
            )
        case "http" | "https":
            shown = shown_url(url)
            raise UsageError(
                f"{shown} is a server; the command line and apps work on a store.",
                hint='Name the store that it serves, such as "sqlite:///weft.db" or "postgresql://user@host/database". '
                f"Over HTTP: weft.Client({shown!r}) in Python, or the paths in {shown.rstrip('/')}/openapi.json.",
            )
        case _:
            raise UsageError(
                f"{url!r} is not the URL of a store.",
                hint='Use "sqlite:///weft.db", "sqlite:////absolute/path.db", "postgresql://user@host/database" or "memory://".',
            )


def _postgres(url: str, durability: str, blobs: str | None) -> Store:
    require("postgres", "A store in Postgres")
    from weft.stores.blobs import open_content  # noqa: PLC0415
    from weft.stores.postgres import PostgresStore  # noqa: PLC0415

    return PostgresStore(url, durability=durability, content=None if blobs is None else open_content(blobs))
