"""Compute the checksums of stored events, mail and snapshots, and check what is read. Pure.

The same bytes have the same checksum in every store, so a log can be copied from one store to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from zlib import crc32

from weft.core.ids import RunUid, Seq
from weft.errors import Corrupt
from weft.ports.store import Mail, Snapshot, StoredEvent


def uid_crc(uid: str) -> int:
    """Return the checksum of a uid, the start value for the checksums of its events."""
    return crc32(uid.encode())


def event_crc(uid_sum: int, seq: int, at: int, body: bytes) -> int:
    """Return the checksum of an event. ``uid_sum`` is the checksum of its run's uid."""
    return crc32(body, crc32(b"%d %d" % (seq, at), uid_sum))


def checked_events(uid: RunUid, after: Seq, rows: Iterable[Sequence[Any]]) -> list[StoredEvent]:
    """Check rows of ``seq, at, body, crc`` that follow event ``after``. Raises Corrupt for the first bad row."""
    uid_sum = uid_crc(uid)
    events = []
    for expected, (seq, at, body, crc) in enumerate(rows, after + 1):
        if seq != expected:
            raise _corrupt_event(uid, expected, "is missing")
        try:
            found = event_crc(uid_sum, seq, at, body)
        except (TypeError, ValueError):
            found = None  # damage may also change the type of a value
        if found is None or found != crc:
            raise _corrupt_event(uid, expected, "does not match its checksum")
        events.append(StoredEvent(seq, at, body))
    return events


def mail_crc(mail: Mail) -> int:
    """Return the checksum of a piece of mail."""
    head = "\0".join((mail.id, str(mail.at), "" if mail.key is None else f"={mail.key}", mail.digest))
    return crc32(mail.body, crc32(head.encode(), uid_crc(mail.to)))


def checked_mail(uid: RunUid, rows: Iterable[Sequence[Any]]) -> list[Mail]:
    """Check rows of ``id, body, at, key, digest, crc``. Raises Corrupt for the first bad row."""
    checked = []
    for name, body, at, key, digest, crc in rows:
        mail = Mail(id=name, to=uid, body=body, at=at, key=key, digest=digest)
        if not _is_mail_intact(mail, crc):
            raise Corrupt(
                f"Mail {name} of run {uid} does not match its checksum.",
                hint="The run has stopped; other runs are not affected. Restore the run from a backup.",
                uid=uid,
            )
        checked.append(mail)
    return checked


def checked_inboxes(rows: Iterable[Sequence[Any]]) -> dict[RunUid, Sequence[Mail] | Corrupt]:
    """Check rows of ``uid, id, body, at, key, digest, crc``, sorted by run.

    Returns the mail of each run, or the error for a run with a bad row. Other runs are not affected.
    """
    inboxes: dict[RunUid, Sequence[Mail] | Corrupt] = {}
    for uid, group in groupby(rows, key=itemgetter(0)):
        try:
            inboxes[uid] = checked_mail(uid, (row[1:] for row in group))
        except Corrupt as error:
            inboxes[uid] = error
    return inboxes


def _is_mail_intact(mail: Mail, crc: Any) -> bool:
    try:
        return bool(mail_crc(mail) == crc)
    except (TypeError, ValueError):
        return False


def check_log_end(uid: RunUid, last: int, seq: int) -> None:
    """Check that the log ends at the number in the run's row. Raises Corrupt."""
    if last != seq:
        raise _corrupt_event(
            uid, min(last, seq) + 1, f"is missing: the log ends at event {last} but should end at {seq}"
        )


def _corrupt_event(uid: RunUid, seq: int, what: str) -> Corrupt:
    return Corrupt(
        f"Event {seq} of run {uid} {what}.",
        hint="The run has stopped; other runs are not affected. Restore the run from a backup.",
        uid=uid,
        seq=seq,
    )


def snapshot_crc(uid_sum: int, snapshot: Snapshot) -> int:
    """Return the checksum of a snapshot. ``uid_sum`` is the checksum of its run's uid."""
    return crc32(snapshot.body, crc32(b"%d %d" % (snapshot.seq, snapshot.fold), uid_sum))
