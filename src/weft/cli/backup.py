"""``weft backup`` and ``weft restore``: copy a SQLite store while hosts write, and make a store from the copy again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from weft.cli.messages import say
from weft.cli.output import age_text, iso_time, print_json, time_text
from weft.cli.store_access import refuse_server, sqlite_file, store_label, url_of
from weft.core.plurals import pluralize
from weft.errors import UsageError
from weft.runtime.clock import SystemClock
from weft.stores import blobs_url, url_without_password

POSTGRES = ("postgresql://", "postgres://")
DANGER = (
    "What was done after the backup is not in it: hosts perform these steps again, with the same keys. Before you "
    "start a host, look at what was sent, paid or booked since then (docs/backup.md)."
)


def back_up_store(file: str, *, url: str | None, app: str | None, json: bool) -> None:
    """Back up the SQLite store to a new file, and print what it has. Raises Refused, Corrupt, Full."""
    address = url_of(url, app)
    refuse_server(address, "weft backup", "it copies the file of a store")
    _refuse_postgres(address, file)
    from weft.stores.sqlite.backup import back_up

    made = back_up(sqlite_file(address), Path(file).absolute())
    if json:
        print_json({"store": url_without_password(address), **_backup_document(made), "sha256": made.sha256})
        return
    contents = made.contents
    print(made.file, flush=True)
    say(
        f"{pluralize(contents.runs, 'run')}, {contents.open_runs:,} of them open, and "
        f"{pluralize(contents.events, 'event')} of {store_label(address)}: {made.size_bytes:,} bytes, checked"
    )
    say("it has everything that the store has, also personal data: keep it where only you can read it")


def restore_store(file: str, *, url: str | None, app: str | None, json: bool) -> None:
    """Make a new store from a backup, and say how many runs came back. Raises Refused, Corrupt, NewerSchema."""
    address = url_of(url, app)
    refuse_server(address, "weft restore", "it writes the file of a store")
    _refuse_postgres(address, file)
    from weft.stores.sqlite.backup import restore

    made = restore(Path(file).absolute(), sqlite_file(address))
    contents = made.contents
    if json:
        found = {**_backup_document(made), "digest_checked": made.digest_checked, "note": DANGER}
        print_json({"store": url_without_password(address), **found})
        return
    print(made.file, flush=True)
    last = ""
    if contents.last_event_at is not None:
        ago = age_text(SystemClock().now_ms() - contents.last_event_at)
        last = f"; the newest event is of {time_text(contents.last_event_at)}, {ago} ago"
    runs, events = pluralize(contents.runs, "run"), pluralize(contents.events, "event")
    say(f"{runs} came back, {contents.open_runs:,} of them open, with {events}{last}")
    if not made.digest_checked:
        say(f"{file}.sha256 is missing, so it is unknown whether the file is the one that was backed up")
    say(DANGER)


def _backup_document(made: Any) -> dict[str, Any]:
    contents = msgspec.to_builtins(made.contents)
    found = {name: value for name, value in contents.items() if name != "last_event_at"}
    return {"file": made.file, **found, "last_event_at": iso_time(made.contents.last_event_at)}


def _refuse_postgres(address: str, file: str) -> None:
    """Refuse a store in Postgres, and name the tools that Postgres has for this. Raises UsageError."""
    if not address.startswith(POSTGRES):
        return
    place = url_without_password(address)
    base, _, name = place.rpartition("/")
    blobs = "WEFT_BLOBS is set: large values are there, and not in the database. Copy them after pg_dump."
    lines = [
        f"Back it up: pg_dump --format=custom --file={file} '{place}'",
        f"Restore it: createdb --maintenance-db='{base}/postgres' {name}_restored",
        f"       then: pg_restore --exit-on-error --no-owner --dbname='{base}/{name}_restored' {file}",
        "To lose seconds instead of hours, archive the write-ahead log (point-in-time recovery): docs/backup.md",
    ]
    raise UsageError(
        "weft backup and weft restore are for SQLite; Postgres has tools of its own.",
        hint="\n".join([*lines, blobs] if blobs_url() is not None else lines),
        code="usage.postgres_tools",
    )
