"""Copy a SQLite store to a file while hosts write to it, and make a store from such a file again.

A backup is a SQLite database of one moment, with everything that the store has: logs, mail, blobs, keys. Beside it is
``FILE.sha256``, in the format of ``sha256sum``. Both appear only when they are complete and checked.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj

import apsw
import msgspec

from weft.core.ids import Millis
from weft.errors import Corrupt, Full, NewerSchema, Refused, Unavailable, UsageError
from weft.ports.store import OPEN_STATUSES
from weft.stores.sqlite.connection import NO_ROOM, connect, translate_errors
from weft.stores.sqlite.lockfile import held_locks
from weft.stores.sqlite.schema import APPLICATION_ID, NEWEST

ROWS_SHOWN = 3
"""How many findings of the integrity check are shown."""
_COMPANIONS = ("-wal", "-shm", "-journal")
"""The files that SQLite keeps beside a database that is open, or was not closed."""


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup or a restored store has."""

    runs: int
    open_runs: int
    events: int
    last_event_at: Millis | None
    """When its newest event was written. What was done later is not in it."""
    schema: int


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was written and checked."""

    file: str
    size_bytes: int
    sha256: str
    contents: Contents


class RestoredStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store that was made from a backup."""

    file: str
    contents: Contents
    digest_checked: bool
    """Whether the backup had a digest beside it, and matched it."""


def back_up(source: Path, target: Path) -> Backup:
    """Copy a store to a new file, as of one moment. Hosts may write meanwhile, and are not held up.

    Raises:
        UsageError: there is no store.
        Refused: the file exists already.
        Corrupt: the store, or the copy of it, is damaged, or is no store of Weft.
        Full, Unavailable: the file cannot be written. Then nothing is left of it.
    """
    if not source.is_file():
        raise UsageError(f"There is no store {source}.", hint="Name it: --url sqlite:///shop/weft.db")
    if os.path.lexists(target):  # also a link to nothing
        raise Refused(
            f"{target} exists already, and was not changed.",
            hint="Name another file for each backup, with its date.",
            code="backup.file_exists",
        )
    if not target.parent.is_dir():
        raise UsageError(f"There is no directory {target.parent}.", hint="Create it first.")
    with _draft_of(target) as draft:
        _copy_pages(source, draft)
        contents = _checked_contents(draft, source)
        digest = _sync_and_digest(draft)
        size = draft.stat().st_size
        _write_digest(target, digest)
        draft.rename(target)
    _sync_folder(target.parent)
    return Backup(file=str(target), size_bytes=size, sha256=digest, contents=contents)


def restore(file: Path, target: Path) -> RestoredStore:
    """Make a new store from a backup. No host of the old store is taken to be alive in it.

    Raises:
        UsageError: there is no such backup.
        Refused: there is a store already, or a process still works on one at this path.
        Corrupt: the backup is damaged, was changed, or is no store of Weft.
        NewerSchema: a newer Weft wrote it.
    """
    if not file.is_file():
        raise UsageError(f"There is no backup {file}.")
    check_free(target)
    known = _known_digest(file)
    with _draft_of(target) as draft:
        digest = _copy_file(file, draft)
        if known is not None and digest != known:
            raise Corrupt(
                f"{file} is not the file that was backed up: its SHA-256 is not the one in {digest_file(file).name}.",
                hint="Use another backup.",
            )
        contents = _checked_contents(draft, file)
        _forget_hosts(draft)
        _sync_and_digest(draft)
        check_free(target)
        draft.rename(target)
    _sync_folder(target.parent)
    return RestoredStore(file=str(target), contents=contents, digest_checked=known is not None)


def digest_file(file: Path) -> Path:
    """Return the file with the digest of a backup."""
    return file.with_name(f"{file.name}.sha256")


def check_free(target: Path) -> None:
    """Check that a store can be restored to this path. Raises Refused, UsageError."""
    hosts = held_locks(target)
    if hosts:
        raise Refused(
            f"A process still works on {target} (host {hosts[0]}).",
            hint="Stop it first: what it writes would be lost, and what it does would be done twice.",
            code="backup.store_in_use",
        )
    found = [path for path in (target, *(Path(f"{target}{suffix}") for suffix in _COMPANIONS)) if path.exists()]
    if found:
        raise Refused(
            f"{found[0]} exists, and was not changed.",
            hint="Restore to a new file, or move the old store away with its -wal and -shm files.",
            code="backup.file_exists",
        )
    if not target.parent.is_dir():
        raise UsageError(f"There is no directory {target.parent}.", hint="Create it first.")


@contextmanager
def _draft_of(target: Path) -> Iterator[Path]:
    """Create an empty file that only its owner can read, beside the target. It is removed unless it was renamed."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}.") from None
    try:
        yield draft
    except OSError as error:
        if error.errno in NO_ROOM:
            raise Full(f"There is no room left to write {target}.", hint="Free some space, and repeat it.") from error
        raise Unavailable(f"{target} cannot be written: {error.strerror}.", hint="Check the disk.") from error
    finally:
        for suffix in ("", *_COMPANIONS):
            Path(f"{draft}{suffix}").unlink(missing_ok=True)


def _copy_pages(source: Path, draft: Path) -> None:
    """Copy all pages in one read transaction, so that the copy is of one moment."""
    read = connect(source, "full")
    try:
        if read.pragma("application_id") != APPLICATION_ID:
            raise _no_store(source)
        with translate_errors(draft):
            written = apsw.Connection(str(draft))
            try:
                with translate_errors(draft, written), written.backup("main", read, "main") as backup:
                    backup.step(-1)
                # One file that needs no others beside it.
                written.execute("PRAGMA journal_mode = delete")
            finally:
                written.close()
    finally:
        read.close()


def _copy_file(file: Path, draft: Path) -> str:
    """Copy a file. Returns its digest."""
    with translate_errors(draft), file.open("rb") as read, draft.open("wb") as written:
        copyfileobj(read, written, 1024 * 1024)
    return _file_digest(draft)


def _checked_contents(path: Path, origin: Path) -> Contents:
    """Check a copy and return what it has. Raises Corrupt, NewerSchema."""
    with translate_errors(origin):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            if connection.pragma("application_id") != APPLICATION_ID:
                raise _no_store(origin)
            schema = int(connection.pragma("user_version"))
            if schema > NEWEST:
                raise NewerSchema(
                    f"{origin} was written by a newer Weft (schema {schema}; this Weft knows {NEWEST}).",
                    hint="Upgrade Weft here: pip install -U weft",
                )
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            if found != ["ok"]:
                raise Corrupt(f"{origin} is damaged: {'; '.join(found[:ROWS_SHOWN])}.", hint="Use an earlier backup.")
            return _count_contents(connection, schema)
        finally:
            connection.close()


def _count_contents(connection: apsw.Connection, schema: int) -> Contents:
    marks = ", ".join("?" * len(OPEN_STATUSES))
    count = connection.execute
    return Contents(
        runs=count("SELECT count(*) FROM runs").get,
        open_runs=count(f"SELECT count(*) FROM runs WHERE status IN ({marks})", OPEN_STATUSES).get,  # noqa: S608
        events=count("SELECT count(*) FROM events").get,
        last_event_at=count("SELECT max(at) FROM events").get,
        schema=schema,
    )


def _forget_hosts(path: Path) -> None:
    """Remove the hosts of the old store, so that the first host claims their runs at once, each in a new epoch."""
    with translate_errors(path):
        connection = apsw.Connection(str(path))
        try:
            connection.execute("DELETE FROM hosts")
        finally:
            connection.close()


def _no_store(path: Path) -> Corrupt:
    return Corrupt(f"{path} is not a store of Weft.", hint="Name another file. This one was not changed.")


def _known_digest(file: Path) -> str | None:
    """Return the digest beside a backup; None if there is none. Raises Corrupt."""
    try:
        words = digest_file(file).read_text("ascii").split()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise Corrupt(f"{digest_file(file)} cannot be read: {error}.") from None
    if not words or len(words[0]) != hashlib.sha256().digest_size * 2:
        raise Corrupt(f"{digest_file(file)} has no SHA-256.", hint="Remove it to restore without this check.")
    return words[0]


def _write_digest(target: Path, digest: str) -> None:
    path = digest_file(target)
    draft = path.with_name(f".{path.name}.part")
    draft.unlink(missing_ok=True)
    with open(draft, "x", encoding="ascii", opener=_open_private) as file:
        file.write(f"{digest}  {target.name}\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync_and_digest(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return _file_digest(path)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make the names of new files durable, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
