"""Checksums of stored events, mail and snapshots, and the checks when they are read. Pure.

The same bytes have the same checksum in every store, so a log can be copied from one store to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from weft.core.ids import RunUid, Seq
from weft.errors import Corrupt
from weft.ports.store import Mail, Snapshot, StoredEvent


def uid_crc(uid: str) -> int:
    """Return the checksum of a uid, with which the checksums of its events begin."""
    return crc32(uid.encode())


def event_crc(of_uid: int, seq: int, at: int, body: bytes) -> int:
    """Return the checksum of an event. ``of_uid`` is that of its run's uid."""
    return crc32(body, crc32(b"%d %d" % (seq, at), of_uid))


def checked_events(uid: RunUid, after: Seq, rows: Iterable[Sequence[Any]]) -> list[StoredEvent]:
    """Check rows of ``seq, at, body, crc`` that follow ``after``. Raises Corrupt for the first bad one."""
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
        # Damage may change the type of a value, too.
        return False


def mail_crc(mail: Mail) -> int:
    """Return the checksum of a piece of mail."""
    head = "\0".join((mail.id, str(mail.at), "" if mail.key is None else f"={mail.key}", mail.digest))
    return crc32(mail.body, crc32(head.encode(), uid_crc(mail.to)))


def checked_mail(uid: RunUid, rows: Iterable[Sequence[Any]]) -> list[Mail]:
    """Check rows of ``id, body, at, key, digest, crc``. Raises Corrupt for the first bad one."""
    found = []
    for name, body, at, key, digest, crc in rows:
        mail = Mail(id=name, to=uid, body=body, at=at, key=key, digest=digest)
        if not _is_mail_whole(mail, crc):
            raise Corrupt(
                f"Mail {name} of run {uid} does not match its checksum.",
                hint="The run stands still; others are not concerned. Restore it from a backup.",
                uid=uid,
            )
        found.append(mail)
    return found


def _is_mail_whole(mail: Mail, crc: Any) -> bool:
    try:
        return bool(mail_crc(mail) == crc)
    except (TypeError, ValueError):
        return False


def check_log_end(uid: RunUid, last: int, seq: int) -> None:
    """Check that the log ends where the row says. Raises Corrupt."""
    if last != seq:
        raise _corrupt(uid, min(last, seq) + 1, f"is missing: the log ends at {last} and must end at {seq}")


def _corrupt(uid: RunUid, seq: int, what: str) -> Corrupt:
    return Corrupt(
        f"Event {seq} of run {uid} {what}.",
        hint="The run stands still; others are not concerned. Restore it from a backup.",
        uid=uid,
        seq=seq,
    )


def snapshot_crc(of_uid: int, snapshot: Snapshot) -> int:
    """Return the checksum of a snapshot. ``of_uid`` is that of its run's uid."""
    return crc32(snapshot.body, crc32(b"%d %d" % (snapshot.seq, snapshot.fold), of_uid))
