"""The store in one SQLite file. Everything about SQLite stays in this package."""

from weft.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
