"""The store in a Postgres database, for many hosts. Nothing outside this package knows Postgres."""

from weft.stores.postgres.schema import Migration, migrate, pending_migrations
from weft.stores.postgres.store import PostgresStore

__all__ = ["Migration", "PostgresStore", "migrate", "pending_migrations"]
