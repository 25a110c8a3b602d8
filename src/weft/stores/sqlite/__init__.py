"""The store in one SQLite file. Nothing outside this package knows SQLite."""

from weft.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
