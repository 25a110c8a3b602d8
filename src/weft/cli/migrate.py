"""``weft migrate``: bring a store to the schema of this version, or print the SQL that would do so."""

from __future__ import annotations

from weft.cli.messages import say
from weft.cli.store_access import open_service, refuse_server, sqlite_file, store_exists, store_label, url_of
from weft.errors import UsageError
from weft.extras import require


async def migrate_store(*, dry_run: bool, url: str | None, app: str | None) -> None:
    """Migrate a store. This is optional: opening a store migrates it, too."""
    address = url_of(url, app)
    refuse_server(address, "weft migrate", "it changes the schema of a store")
    if dry_run:
        await _print_pending(address)
        return
    names = [name for name, _ in await pending_migrations(address)]
    async with open_service(address, create=True):
        pass
    outcome = f"applied {', '.join(names)}" if names else "nothing to do: it has this version's schema"
    say(f"{store_label(address)}: {outcome}")


async def _print_pending(address: str) -> None:
    pending = await pending_migrations(address)
    for name, text in pending:
        print(f"-- {name}\n{text.rstrip()}\n")
    if not pending:
        say(f"{store_label(address)}: nothing to do: it has this version's schema")


async def pending_migrations(address: str) -> list[tuple[str, str]]:
    """Return the names and the SQL of the migrations that are not applied yet."""
    if address.startswith("sqlite:"):
        # Imported here, because it imports the SQLite library.
        from weft.stores.sqlite.connection import translate_errors
        from weft.stores.sqlite.schema import pending_migrations as pending_in_sqlite

        path = sqlite_file(address) if store_exists(address) else None
        with translate_errors(sqlite_file(address)):
            return [(f"{file.stem}.sql", file.read_text("utf-8")) for file in pending_in_sqlite(path)]
    if not address.startswith(("postgresql://", "postgres://")):
        raise UsageError(f"{address} has no schema.", hint="Name a store: --url postgresql://user@host/database")
    require("postgres", "A store in Postgres")
    from weft.stores.postgres import pending_migrations as pending_in_postgres

    return [(f"{one.number:03}_{one.name}.sql", one.sql) for one in await pending_in_postgres(address)]


async def missing_tables(address: str) -> list[str]:
    """Return the tables that a store with this version's schema should have and lacks."""
    if address.startswith("sqlite:"):
        from weft.stores.sqlite.connection import translate_errors
        from weft.stores.sqlite.schema import missing_tables as missing_in_sqlite

        with translate_errors(sqlite_file(address)):
            return missing_in_sqlite(sqlite_file(address))
    from weft.stores.postgres.schema import missing_tables as missing_in_postgres

    return [*await missing_in_postgres(address)]
