"""The store in a Postgres database, for many hosts. Everything about Postgres stays in this package."""

from weft.stores.postgres.schema import Migration, migrate, pending
from weft.stores.postgres.store import PostgresStore

__all__ = ["Migration", "PostgresStore", "migrate", "pending"]
