"""Stores, which keep all durable data. One port (``weft.ports.store``), one contract suite, a package per database."""

from __future__ import annotations

from typing import cast

from weft.errors import UsageError
from weft.extras import require
from weft.ports.store import Store
from weft.ports.wal_server import WalServer
from weft.stores.memory import MemoryStore
from weft.stores.redis_use import RedisUse, named_redis, redis_hints, redis_use
from weft.stores.urls import blobs_url, url_without_password

__all__ = [
    "RedisUse",
    "blobs_url",
    "named_redis",
    "open_store",
    "redis_hints",
    "redis_use",
    "url_without_password",
    "wal_server",
]


def open_store(url: str, *, durability: str = "full", blobs: str | None = None, redis: RedisUse | None = None) -> Store:
    """Return the store for a URL, not connected yet. Raises UsageError with a hint if the URL names no store.

    ``blobs`` is the URL under which a Postgres store keeps large values. None keeps them in the database. ``redis`` is
    a server for hints between processes that use Postgres, and for the hot path.
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
            return _open_postgres(url, durability, blobs, redis)
        case "redis" | "rediss":
            raise UsageError(
                f"{url_without_password(url)} is a Redis server, which keeps no runs; it stands beside a store.",
                hint='Keep runs in "postgresql://user@host/database" or "sqlite:///weft.db", and name the server with '
                "redis= or WEFT_REDIS.",
            )
        case "http" | "https":
            shown = url_without_password(url)
            raise UsageError(
                f"{shown} is a server; an app works on a store.",
                hint='Name the store that it serves, such as "sqlite:///weft.db" or "postgresql://user@host/database". '
                f"Over HTTP: weft.Client({shown!r}) in Python, or the paths in {shown.rstrip('/')}/openapi.json.",
            )
        case _:
            raise UsageError(
                f"{url_without_password(url)!r} is not the URL of a store.",
                hint='Use "sqlite:///weft.db", "sqlite:////absolute/path.db", "postgresql://user@host/database" or '
                '"memory://". The command line and weft.Client also take a server: "https://weft.example.com".',
            )


def _open_postgres(url: str, durability: str, blobs: str | None, redis: RedisUse | None) -> Store:
    require("postgres", "A store in Postgres")
    from weft.stores.blobs import open_content  # noqa: PLC0415
    from weft.stores.postgres import PostgresStore  # noqa: PLC0415

    store = PostgresStore(
        url,
        durability=durability,
        content=None if blobs is None else open_content(blobs),
        redis=None if redis is None else redis.url,
        heard=None if redis is None else redis.heard,
    )
    return store if redis is None or not redis.hot else _add_hot_lane(store, redis)


def _add_hot_lane(durable: Store, redis: RedisUse) -> Store:
    from weft.stores.hot.policy import hot_policy  # noqa: PLC0415
    from weft.stores.hot.store import HotStore  # noqa: PLC0415

    return cast("Store", HotStore(durable, wal_server(durable, redis), policy=hot_policy(redis.hot)))


def wal_server(store: Store, redis: RedisUse) -> WalServer:
    """Return the server of a store's deployment, not connected yet."""
    from weft.stores.hot.address import redis_address  # noqa: PLC0415
    from weft.stores.hot.redis_wal_server import RedisWalServer  # noqa: PLC0415
    from weft.stores.redis.namespace import namespace_of  # noqa: PLC0415

    return RedisWalServer(redis_address(redis.url), lambda: namespace_of(store), limit_s=redis.lease_seconds / 2)
