"""``weft migrate``: bring a store to the schema of this version, or print what that would be."""

from __future__ import annotations

from weft.cli.messages import say
from weft.cli.place import described, exists, file_of, opened, url_of
from weft.errors import UsageError
from weft.extras import require


async def migrate_store(*, dry_run: bool, url: str | None, app: str | None) -> None:
    """Migrate a store by hand. Whoever opens a store first migrates it too."""
    address = url_of(url, app)
    if dry_run:
        await _print_pending(address)
        return
    names = [name for name, _ in await _pending(address)]
    async with opened(address, create=True):
        pass
    said = f"applied {', '.join(names)}" if names else "nothing to do: it has this version's schema"
    say(f"{described(address)}: {said}")


async def _print_pending(address: str) -> None:
    pending = await _pending(address)
    for name, text in pending:
        print(f"-- {name}\n{text.rstrip()}\n")
    if not pending:
        say(f"{described(address)}: nothing to do: it has this version's schema")


async def _pending(address: str) -> list[tuple[str, str]]:
    """Return the migrations that are to be applied, with their SQL."""
    if address.startswith("sqlite:"):
        # Imports SQLite's library.
        from weft.stores.sqlite.schema import pending_migrations

        path = file_of(address) if exists(address) else None
        return [(f"{file.stem}.sql", file.read_text("utf-8")) for file in pending_migrations(path)]
    if not address.startswith(("postgresql://", "postgres://")):
        raise UsageError(f"{address} has no schema.", hint="Name a store: --url postgresql://user@host/database")
    require("postgres", "A store in Postgres")
    from weft.stores.postgres import pending_migrations as pending_in_postgres

    return [(f"{one.number:03}_{one.name}.sql", one.sql) for one in await pending_in_postgres(address)]
