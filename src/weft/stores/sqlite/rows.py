"""How rows become the port's values, and back. Checksums are made and checked here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import apsw
import msgspec

from weft.core.ids import RunId, RunUid, Seq
from weft.errors import Corrupt
from weft.ports.store import Mail, NewRun, RunRow, Snapshot, StoredEvent
from weft.stores.rules import canonical, plain, start_mail

RUN_COLUMNS = (
    "uid, id, workflow, version, style, status, seq, epoch, owner, mail, wake_at, format, parent, "
    "created_at, updated_at, ended_at, attributes, fault"
)
_NAMES = RUN_COLUMNS.split(", ")

INSERT_RUN = (
    "INSERT INTO runs (uid, id, workflow, version, style, status, seq, updated_at, epoch, owner, wake_at, "
    "format, parent, created_at, attributes) VALUES (?, ?, ?, ?, ?, 'running', 0, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)


def run_row(values: Sequence[Any]) -> RunRow:
    """A row selected by ``RUN_COLUMNS``."""
    fields = dict(zip(_NAMES, values, strict=True))
    text = fields["attributes"]
    fields["attributes"] = {} if text == "{}" else msgspec.json.decode(text)
    return RunRow(**fields)


def insert_run(connection: apsw.Connection, new: NewRun, id: RunId) -> int | None:
    """Make a row, with its attributes and its start mail; its number. None: the id or uid is taken."""
    attributes = plain(new.attributes)
    connection.execute(
        INSERT_RUN,
        (
            new.uid,
            id,
            new.workflow,
            new.version,
            new.style,
            new.created_at,
            0 if new.owner is None else 1,
            new.owner,
            new.wake_at,
            new.format,
            new.parent,
            new.created_at,
            json_text(attributes),
        ),
    )
    if not connection.changes():
        return None
    num = connection.last_insert_rowid()
    if attributes:
        index_attributes(connection, num, attributes)
    mail = start_mail(new)
    if mail is not None:
        put_mail(connection, num, 1, mail)
        connection.execute("UPDATE runs SET mail = 1, mail_at = ? WHERE num = ?", (mail.at, num))
    return num


def put_mail(connection: apsw.Connection, num: int, n: int, mail: Mail) -> None:
    """Rows of the ``n``-th piece of mail of a run; the count on the run is the caller's."""
    connection.execute("INSERT INTO posted (run, id, n) VALUES (?, ?, ?)", (num, mail.id, n))
    connection.execute(
        "INSERT INTO inbox (run, n, id, at, key, digest, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (num, n, mail.id, mail.at, mail.key, mail.digest, mail.body.decode()),
    )


def mail_of(uid: RunUid, rows: Iterable[Sequence[Any]]) -> list[Mail]:
    """Mail selected by ``id, body, at, key, digest``."""
    return [
        Mail(id=name, to=uid, body=body.encode(), at=at, key=key, digest=digest) for name, body, at, key, digest in rows
    ]


def index_attributes(connection: apsw.Connection, num: int, attributes: dict[str, Any]) -> None:
    """Let a run be found by its attributes."""
    connection.executemany(
        "INSERT INTO attributes (name, value, run) VALUES (?, ?, ?)",
        [(name, canonical(value), num) for name, value in attributes.items()],
    )


def unindex_attributes(connection: apsw.Connection, num: int, attributes: dict[str, Any]) -> None:
    """Let it no longer be found by these."""
    connection.executemany(
        "DELETE FROM attributes WHERE name = ? AND value = ? AND run = ?",
        [(name, canonical(value), num) for name, value in attributes.items()],
    )


def json_text(value: dict[str, Any]) -> str:
    """Attributes as the row keeps them."""
    return msgspec.json.encode(value).decode() if value else "{}"


def uid_crc(uid: str) -> int:
    """The part of a run's checksums that is the same for all its events."""
    return crc32(uid.encode())


def event_crc(of_uid: int, seq: int, at: int, body: bytes) -> int:
    """The checksum over uid, number, time and body; ``of_uid`` is that of the uid alone."""
    return crc32(body, crc32(b"%d %d" % (seq, at), of_uid))


def checked_events(uid: RunUid, after: Seq, rows: Iterable[Sequence[Any]]) -> list[StoredEvent]:
    """Events selected by ``seq, at, body, crc``, numbered on from ``after``. Raises Corrupt, naming the first bad."""
    of_uid = uid_crc(uid)
    events = []
    for expected, (seq, at, body, crc) in enumerate(rows, after + 1):
        if seq != expected:
            raise _corrupt(uid, expected, "is missing")
        if not _is_whole(of_uid, seq, at, body, crc):
            raise _corrupt(uid, expected, "does not match its checksum")
        events.append(StoredEvent(seq, at, body))
    return events


def _is_whole(of_uid: int, seq: int, at: Any, body: Any, crc: Any) -> bool:
    try:
        return bool(event_crc(of_uid, seq, at, body) == crc)
    except (TypeError, ValueError):
        # Damage may change a value's type too.
        return False


def check_end(uid: RunUid, last: int, seq: int) -> None:
    """Raise Corrupt unless the log ends where the run's row says."""
    if last != seq:
        raise _corrupt(uid, min(last, seq) + 1, f"is missing: the log ends at {last} and must end at {seq}")


def _corrupt(uid: RunUid, seq: int, what: str) -> Corrupt:
    return Corrupt(
        f"Event {seq} of run {uid} {what}.",
        hint="The run stands still; others are not concerned. Restore the file from a backup.",
        uid=uid,
        seq=seq,
    )


def snapshot_crc(of_uid: int, snapshot: Snapshot) -> int:
    """The checksum over uid, number, fold and body."""
    return crc32(snapshot.body, crc32(b"%d %d" % (snapshot.seq, snapshot.fold), of_uid))
