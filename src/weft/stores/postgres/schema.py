"""Apply the schema: numbered files in ``migrations/``, in order, under a lock and in one transaction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from weft.errors import Corrupt, NewerSchema
from weft.stores.postgres.connection import close_session
from weft.stores.postgres.session import SCHEMA, Address, Session, address_of, connect, translate_errors

LOCK = 0x57454654
"""The advisory lock for changes of the schema ("WEFT")."""


class Migration(msgspec.Struct, frozen=True):
    """One numbered step of the schema."""

    number: int
    name: str
    sql: str


def _read_migration(file: Path) -> Migration:
    number, _, name = file.stem.partition("_")
    return Migration(int(number), name, file.read_text("utf-8"))


MIGRATIONS = [_read_migration(file) for file in sorted((Path(__file__).parent / "migrations").glob("*.sql"))]
NEWEST = MIGRATIONS[-1].number

_TABLE = re.compile(r"^(CREATE|DROP) TABLE (\w+)", re.MULTILINE)
_CREATE_SCHEMA = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}; "
    "CREATE TABLE migrations (number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL)"
)


async def pending_migrations(url: str) -> Sequence[Migration]:
    """Return the migrations that ``migrate`` would apply. Changes nothing. Raises NewerSchema, Corrupt, Unavailable."""
    address = address_of(url, "fast")
    session = await connect(address)
    try:
        with translate_errors(address):
            return _migrations_after(await _schema_version(session, address), address)
    finally:
        await close_session(session)


async def missing_tables(url: str) -> Sequence[str]:
    """Return the tables of this schema that the database lacks. Changes nothing."""
    known: set[str] = set()
    for one in MIGRATIONS:
        for verb, name in _TABLE.findall(one.sql):
            (known.add if verb == "CREATE" else known.discard)(name)
    address = address_of(url, "fast")
    session = await connect(address)
    try:
        with translate_errors(address):
            rows = await session.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", SCHEMA)
        return sorted(known - {str(row["tablename"]) for row in rows})
    finally:
        await close_session(session)


async def migrate(url: str) -> Sequence[Migration]:
    """Upgrade the database to the newest schema. Returns what was applied. Raises as ``pending_migrations``."""
    address = address_of(url, "full")
    session = await connect(address)
    try:
        return await apply_migrations(session, address)
    finally:
        await close_session(session)


async def apply_migrations(session: Session, address: Address, upto: int = NEWEST) -> Sequence[Migration]:
    """Apply the missing migrations in an open session, up to number ``upto``. Returns those that were applied."""
    with translate_errors(address):
        if not _migrations_after(await _schema_version(session, address), address):
            return []
        async with session.transaction():
            # Hosts that start together wait for the first of them, however long its migration takes.
            await session.execute("SET LOCAL lock_timeout = 0")
            await session.execute("SELECT pg_advisory_xact_lock($1)", LOCK, timeout=None)
            # Another host may have migrated meanwhile, so the version is read again under the lock.
            version = await _schema_version(session, address)
            wanted = [one for one in _migrations_after(version, address) if one.number <= upto]
            if version == 0 and wanted:
                await session.execute(_CREATE_SCHEMA)
            for one in wanted:
                await session.execute(one.sql)
                await session.execute("INSERT INTO migrations VALUES ($1, $2, now())", one.number, one.name)
        return wanted


def _migrations_after(version: int, address: Address) -> list[Migration]:
    if version > NEWEST:
        raise NewerSchema(
            f"{address.safe_url} was written by a newer Weft (schema {version}; this Weft knows {NEWEST}).",
            hint="Upgrade Weft here: pip install -U weft",
        )
    return [one for one in MIGRATIONS if one.number > version]


async def _schema_version(session: Session, address: Address) -> int:
    """Return the number of the last migration; 0 without migrations. Raises Corrupt if the schema is not Weft's."""
    # Counted first: another host may commit its migration between the two questions.
    tables = await session.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = $1", SCHEMA)
    if await session.fetchval("SELECT to_regclass($1)", f"{SCHEMA}.migrations") is not None:
        return int(await session.fetchval("SELECT coalesce(max(number), 0) FROM migrations"))
    if tables:
        raise Corrupt(
            f'{address.safe_url} has a schema "{SCHEMA}" that is not Weft\'s.',
            hint="Name another database. This one was not changed.",
        )
    return 0
