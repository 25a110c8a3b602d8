"""Open connections to a SQLite file, and translate its errors.

The settings of a new connection are read back. A file that does not accept them is refused.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from weft.errors import Corrupt, Full, StoreError, Unavailable, UsageError, WrongSchema

BUSY_MS = 10_000
"""How long a connection waits for another process while it is opened."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def database_path(url: str) -> Path:
    """Return the path of the file that a URL names. Raises UsageError if it names none."""
    if not url.startswith("sqlite:///"):
        raise UsageError(f"{url!r} does not name a file.", hint='Write three slashes: "sqlite:///weft.db".')
    path = url.removeprefix("sqlite:///")
    if path in {"", ":memory:"} or path.startswith("file:"):
        raise UsageError(f"{url!r} does not name a file.", hint='To keep everything in memory, use "memory://".')
    # Resolved, so that two names of one file lead to the same lock files.
    return Path(path).resolve()


def connect(path: Path, durability: str) -> apsw.Connection:
    """Open the file with the requested durability. Raises Unavailable, Corrupt or Full."""
    if not path.parent.is_dir():
        raise Unavailable(f"There is no directory {path.parent}.", hint="Create it, or name another file.")
    if path.is_dir():
        raise Unavailable(f"{path} is a directory.", hint="Name a file in it.")
    with translate_errors(path):
        connection = apsw.Connection(str(path))
    try:
        with translate_errors(path, connection):
            _configure_connection(connection, durability)
            _check_settings(connection, path, durability)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure_connection(connection: apsw.Connection, durability: str) -> None:
    connection.set_busy_timeout(BUSY_MS)
    for pragma in (
        f"synchronous = {durability}",
        "foreign_keys = on",
        "trusted_schema = off",
        "cell_size_check = on",
        # Checkpoints are made by ``checkpoint.py``, not inside a commit.
        "wal_autocheckpoint = 0",
        # Shrink a WAL that once grew large.
        "journal_size_limit = 67108864",
        "cache_size = -16384",
    ):
        connection.execute(f"PRAGMA {pragma}")
    # Set only if it is not WAL yet, because setting it needs the lock of a writer.
    if connection.pragma("journal_mode") != "wal":
        connection.execute("PRAGMA journal_mode = wal")


def _check_settings(connection: apsw.Connection, path: Path, durability: str) -> None:
    if connection.readonly("main"):
        raise _read_only(path, "it is read-only")
    wanted = {
        "journal_mode": "wal",
        "synchronous": {"normal": 1, "full": 2}[durability],
        "foreign_keys": 1,
        "busy_timeout": BUSY_MS,
    }
    for pragma, value in wanted.items():
        actual = connection.pragma(pragma)
        if actual != value:
            raise Unavailable(
                f"SQLite did not accept the setting {pragma} = {value} for {path}; it is {actual}.",
                hint="Keep the file on a local disk that supports write-ahead logging.",
            )


_LACKS = ("no such table", "no such column", "has no column named")


@contextmanager
def translate_errors(path: Path, connection: apsw.Connection | None = None) -> Iterator[None]:
    """Translate SQLite errors into Weft errors."""
    try:
        yield
    except apsw.Error as error:
        raise translate_error(error, path, connection) from error
    except UnicodeDecodeError as error:
        raise Corrupt(
            f"{path} contains text that is not UTF-8 ({error}).", hint="Restore the file from a backup."
        ) from error


def translate_error(error: apsw.Error, path: Path, connection: apsw.Connection | None = None) -> StoreError:
    """Return the Weft error for a SQLite error."""
    number = connection.system_errno if connection is not None else 0
    match error:
        case apsw.FullError():
            return _full_error(path)
        case apsw.IOError() if number in NO_ROOM:
            return _full_error(path)
        case apsw.BusyError() | apsw.LockedError():
            return Unavailable(
                f"{path} is locked by another process.",
                hint="Find the program that keeps a write transaction open, and end it.",
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError() | apsw.CantOpenError():
            return _read_only(path, str(error))
        case apsw.NotADBError():
            return Corrupt(f"{path} is not a SQLite database.", hint="Name another file. This one was not changed.")
        case apsw.CorruptError():
            return Corrupt(
                f"{path} is damaged ({error}).",
                hint="Restore the file from a backup, or save what is left with: sqlite3 .recover",
            )
        case apsw.IOError():
            return Unavailable(f"{path} cannot be read or written ({error}).", hint="Check the disk.")
        case apsw.SQLError() if any(lack in str(error) for lack in _LACKS):
            return WrongSchema(
                f"{path} lacks what its schema number promises ({error}).",
                hint="Restore the file from a backup, or name another file. This one was not changed.",
            )
        case _:
            return StoreError(f"{path}: {error}")


def _read_only(path: Path, why: str) -> Unavailable:
    return Unavailable(
        f"{path} cannot be opened for writing: {why}.",
        hint="Make the file and its directory writable: Weft also writes files beside it.",
    )


def _full_error(path: Path) -> Full:
    return Full(f"There is no room left to write {path}.", hint="Free some space; Weft continues without a restart.")
