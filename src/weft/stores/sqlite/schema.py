"""Apply the schema: numbered files in ``schema/``, in order, in one transaction."""

from __future__ import annotations

from pathlib import Path

import apsw

from weft.errors import Corrupt, NewerSchema

FILES = sorted((Path(__file__).parent / "schema").glob("*.sql"))
NEWEST = int(FILES[-1].stem)
APPLICATION_ID = 0x57454654  # "WEFT", in the file's header


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Upgrade the file to the newest schema. Raises NewerSchema, or Corrupt if it belongs to another program."""
    if _schema_version(connection) == NEWEST and connection.pragma("application_id") == APPLICATION_ID:
        return
    # Another process may have migrated the file meanwhile, so the version is read again inside the transaction.
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check_owner(connection, path)
        _apply_migrations(connection, path)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def pending_migrations(path: Path | None) -> list[Path]:
    """Return the migrations that opening the store would apply; all of them without a file. Changes nothing.

    Raises NewerSchema, or Corrupt if it belongs to another program.
    """
    if path is None:
        return FILES
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        pending = _migrations_after(_schema_version(connection), path)
        if pending:
            _check_owner(connection, path)
        return pending
    finally:
        connection.close()


def missing_tables(path: Path) -> list[str]:
    """Return the tables and indexes of this schema that the file lacks. Changes nothing."""
    blank = apsw.Connection(":memory:")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        migrate(blank, path)
        return sorted(_object_names(blank) - _object_names(connection))
    finally:
        connection.close()
        blank.close()


def _object_names(connection: apsw.Connection) -> set[str]:
    return {
        str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")
    }


def _apply_migrations(connection: apsw.Connection, path: Path) -> None:
    for file in _migrations_after(_schema_version(connection), path):
        connection.execute(file.read_text("utf-8"))
    connection.execute(f"PRAGMA user_version = {NEWEST}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _migrations_after(version: int, path: Path) -> list[Path]:
    if version > NEWEST:
        raise NewerSchema(
            f"{path} was written by a newer Weft (schema {version}; this Weft knows {NEWEST}).",
            hint="Upgrade Weft here: pip install -U weft",
        )
    return FILES[version:]


def _check_owner(connection: apsw.Connection, path: Path) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if tables and connection.pragma("application_id") != APPLICATION_ID:
        raise Corrupt(
            f"{path} is the database of another program.", hint="Name another file. This one was not changed."
        )


def _schema_version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))
