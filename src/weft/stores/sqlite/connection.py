"""Connections to one SQLite file, and the translation of its errors.

The settings of a new connection are read back. A file that does not accept them is refused.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from weft.errors import Corrupt, Full, StoreError, Unavailable, UsageError

BUSY_MS = 10_000
"""How long a writer waits for another process before it gives up."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def path_of(url: str) -> Path:
    """Return the path that a URL names. Raises UsageError."""
    if not url.startswith("sqlite:///"):
        raise UsageError(f"{url!r} names no file.", hint='Write three slashes: "sqlite:///weft.db".')
    path = url.removeprefix("sqlite:///")
    if path in {"", ":memory:"} or path.startswith("file:"):
        raise UsageError(f"{url!r} names no file.", hint='To keep everything in memory, use "memory://".')
    # Two names of one file must lead to the same lock files.
    return Path(path).resolve()


def connect(path: Path, durability: str) -> apsw.Connection:
    """Open the file and make it durable as asked. Raises Unavailable, Corrupt, Full."""
    if not path.parent.is_dir():
        raise Unavailable(f"There is no directory {path.parent}.", hint="Create it, or name another file.")
    if path.is_dir():
        raise Unavailable(f"{path} is a directory.", hint="Name a file in it.")
    with translate_errors(path):
        connection = apsw.Connection(str(path))
    try:
        with translate_errors(path, connection):
            _configure(connection, durability)
            _check_settings(connection, path, durability)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: apsw.Connection, durability: str) -> None:
    connection.set_busy_timeout(BUSY_MS)
    for pragma in (
        f"synchronous = {durability}",
        "foreign_keys = on",
        "trusted_schema = off",
        "cell_size_check = on",
        # Checkpoints are made beside the commits, not inside one (see checkpoint.py).
        "wal_autocheckpoint = 0",
        # Shrink a WAL that once grew large.
        "journal_size_limit = 67108864",
        "cache_size = -16384",
    ):
        connection.execute(f"PRAGMA {pragma}")
    # Not written if it is WAL already: a reader must not need the lock of a writer.
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
        found = connection.pragma(pragma)
        if found != value:
            raise Unavailable(
                f"{path}: SQLite says {pragma} = {found} where {value} was asked for.",
                hint="Keep the file on a local disk that supports write-ahead logging.",
            )


@contextmanager
def translate_errors(path: Path, connection: apsw.Connection | None = None) -> Iterator[None]:
    """Translate errors of SQLite into those of Weft."""
    try:
        yield
    except apsw.Error as error:
        raise translate_error(error, path, connection) from error
    except UnicodeDecodeError as error:
        raise Corrupt(f"{path} holds text that is not UTF-8 ({error}).", hint="Restore it from a backup.") from error


def translate_error(error: apsw.Error, path: Path, connection: apsw.Connection | None = None) -> StoreError:
    """Return the Weft error for an error of SQLite."""
    number = connection.system_errno if connection is not None else 0
    match error:
        case apsw.FullError():
            return _full(path)
        case apsw.IOError() if number in _NO_ROOM:
            return _full(path)
        case apsw.BusyError() | apsw.LockedError():
            return Unavailable(
                f"{path} was locked by another process for {BUSY_MS // 1000} s.",
                hint="Another program holds a write transaction open; end it.",
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError() | apsw.CantOpenError():
            return _read_only(path, str(error))
        case apsw.NotADBError():
            return Corrupt(f"{path} is not a SQLite database.", hint="Name another file; this one was left as it is.")
        case apsw.CorruptError():
            return Corrupt(
                f"{path} is damaged ({error}).", hint="Restore it from a backup, or save what is left: sqlite3 .recover"
            )
        case apsw.IOError():
            return Unavailable(f"{path} cannot be read or written ({error}).", hint="Look at the disk.")
        case _:
            return StoreError(f"{path}: {error}")


def _read_only(path: Path, why: str) -> Unavailable:
    return Unavailable(
        f"{path} cannot be opened for writing: {why}.",
        hint="Weft writes the file and others beside it: the file and its directory must both be writable.",
    )


def _full(path: Path) -> Full:
    return Full(f"There is no room left to write {path}.", hint="Free some space; Weft continues without a restart.")
