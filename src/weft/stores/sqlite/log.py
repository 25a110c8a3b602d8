"""The logs of runs in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.ports.blobs import LINKS_MAX
from weft.ports.new_run import NewRun
from weft.ports.retention import AuditEntry
from weft.ports.store import (
    OPEN_STATUSES,
    Append,
    KeyRow,
    Loaded,
    Mail,
    Outcome,
    Release,
    RunRow,
    Sent,
    Snapshot,
    StoredEvent,
)
from weft.stores.checksums import check_log_end, checked_events, checked_mail, snapshot_crc, uid_crc
from weft.stores.judge import check_numbering, judge_create, judge_release
from weft.stores.rows import NOBODY
from weft.stores.sqlite.commit import CommitBatch, write_snapshot
from weft.stores.sqlite.mail import deliver_mail
from weft.stores.sqlite.plain_append import try_plain_append
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import RUN_COLUMNS, insert_run, read_head, run_row
from weft.stores.sqlite.writer import Writer

SMALL_EVENTS_MAX = 500
"""More events than this are read on another thread."""

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_CLAIM = (
    f"UPDATE runs SET owner = ?, epoch = epoch + 1, wake_at = NULL WHERE uid = ? AND epoch = ? AND status IN ({_OPEN}) "
    f"RETURNING {RUN_COLUMNS}"
)
REFERS_TO = (
    "WITH RECURSIVE above (hash) AS (VALUES (?1) UNION "
    f"SELECT l.parent FROM above a JOIN blob_links l ON l.child = a.hash LIMIT {LINKS_MAX}) "
    "SELECT 1 FROM above a CROSS JOIN refs ON refs.hash = a.hash "
    "WHERE refs.run = (SELECT num FROM runs WHERE uid = ?2) LIMIT 1"
)
_RELEASE = (
    "UPDATE runs SET owner = NULL, wake_at = ? "
    "WHERE uid = ? AND epoch = ? AND seq = ? AND mail = ? AND owner IS NOT NULL"
)
_START_NOW = "UPDATE runs SET wake_at = NULL WHERE uid = ? AND seq = 0 AND owner IS NULL AND ended_at IS NULL"


class SqliteLog:
    """The run log of a SQLite store."""

    commits_in_place = True
    hot = None

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        if len(batch) == 1 and try_plain_append(self._writer, batch[0], host):
            return [Outcome.ACCEPTED]
        check_numbering(batch)
        numbers = self._writer.numbers

        def work(connection: apsw.Connection) -> list[Outcome]:
            return CommitBatch(connection, host, numbers).write(batch)

        return await (self._writer.small(work) if len(batch) == 1 else self._writer.large(work))

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        found = self._reader.read(lambda connection: _load_run(connection, uid, fold, SMALL_EVENTS_MAX))
        if found is not _TOO_LONG:
            return found
        return await self._reader.read_in_thread(lambda connection: _load_run(connection, uid, fold, None))

    async def events(self, uid: RunUid, *, after: Seq, limit: int) -> Sequence[StoredEvent]:
        if limit > SMALL_EVENTS_MAX:
            return await self._reader.read_in_thread(lambda connection: _read_events(connection, uid, after, limit))
        return self._reader.read(lambda connection: _read_events(connection, uid, after, limit))

    async def claim(
        self, uids: Sequence[RunUid], host: HostId, *, expected: Mapping[RunUid, Epoch]
    ) -> Sequence[RunRow]:
        def work(connection: apsw.Connection) -> list[RunRow]:
            found = (connection.execute(_CLAIM, (host, uid, expected.get(uid))).fetchone() for uid in uids)
            return [run_row(row) for row in found if row is not None]

        return await (self._writer.small(work) if len(uids) == 1 else self._writer.large(work))

    async def release(self, releases: Sequence[Release]) -> Sequence[Outcome]:
        def work(connection: apsw.Connection) -> list[Outcome]:
            return [_release_run(connection, release) for release in releases]

        return await (self._writer.small(work) if len(releases) == 1 else self._writer.large(work))

    async def send(self, mail: Sequence[Mail]) -> Sequence[Sent]:
        def work(connection: apsw.Connection) -> list[Sent]:
            sent = [deliver_mail(connection, piece) for piece in mail]
            connection.executemany(_START_NOW, [(piece.to,) for piece in mail if piece.urgent])
            return sent

        return await (self._writer.small(work) if len(mail) == 1 else self._writer.large(work))

    async def create(self, runs: Sequence[NewRun]) -> Sequence[Outcome]:
        def work(connection: apsw.Connection) -> list[Outcome]:
            return [judge_create(taken=insert_run(connection, new, new.id) is None) for new in runs]

        return await (self._writer.small(work) if len(runs) == 1 else self._writer.large(work))

    async def write_run(self, run: Append) -> Outcome:
        check_numbering([run])
        numbers = self._writer.numbers

        def work(connection: apsw.Connection) -> Outcome:
            return CommitBatch(connection, NOBODY, numbers).write_run(run)

        return await self._writer.large(work)

    async def write_together(self, batch: Sequence[Append], entry: AuditEntry | None = None) -> Sequence[Outcome]:
        check_numbering(batch)
        numbers = self._writer.numbers
        return await self._writer.large(
            lambda connection: CommitBatch(connection, NOBODY, numbers).write_together(batch, entry)
        )

    async def keys(self, uid: RunUid) -> Sequence[KeyRow]:
        text = "SELECT key, digest, k.seq FROM runs r JOIN keys k ON k.run = r.num WHERE uid = ? ORDER BY key"

        def work(connection: apsw.Connection) -> list[tuple[Any, ...]]:
            return connection.execute(text, (uid,)).fetchall()

        return [KeyRow(*row) for row in self._reader.read(work)]

    async def inbox(self, uid: RunUid) -> Sequence[Mail]:
        return self._reader.read(lambda connection: _read_inbox(connection, uid))

    async def refers_to(self, uid: RunUid, digest: str) -> bool:
        found = self._reader.read(lambda connection: connection.execute(REFERS_TO, (digest, uid)).get)
        return found is not None

    async def mark_fault(self, uid: RunUid, fault: str | None, *, status: str | None = None) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.execute("UPDATE runs SET fault = ? WHERE uid = ?", (fault, uid))
            if status is not None:
                connection.execute("UPDATE runs SET status = ? WHERE uid = ? AND ended_at IS NULL", (status, uid))

        await self._writer.small(work)


_TOO_LONG: Any = object()
"""Returned for a run with too many events to read on this thread."""


# The functions below fetch all rows before they check them. An error during a fetch would keep the statement open
# for as long as the error itself is kept, and until then the connection would read old data.


def _load_run(connection: apsw.Connection, uid: RunUid, fold: int, events_max: int | None) -> Loaded | None:
    found: Any = connection.execute(f"SELECT num, cut, {RUN_COLUMNS} FROM runs WHERE uid = ?", (uid,)).fetchone()
    if found is None:
        return None
    num, cut, row = found[0], found[1], run_row(found[2:])
    snapshot = _read_snapshot(connection, num, uid, fold)
    if snapshot is not None and snapshot.seq < cut:
        snapshot = None
    after = Seq(cut) if snapshot is None else snapshot.seq
    if events_max is not None and row.seq - after > events_max:
        too_long: Loaded = _TOO_LONG
        return too_long
    events = checked_events(
        uid,
        after,
        connection.execute(
            "SELECT seq, at, CAST(body AS BLOB), crc FROM events WHERE run = ? AND seq > ? ORDER BY seq", (num, after)
        ).fetchall(),
    )
    check_log_end(uid, after + len(events), row.seq)
    return Loaded(row=row, snapshot=snapshot, events=events, inbox=_read_inbox(connection, uid))


def _read_snapshot(connection: apsw.Connection, num: int, uid: RunUid, fold: int) -> Snapshot | None:
    row = connection.execute(
        "SELECT seq, fold, body, crc FROM snapshots WHERE run = ? AND fold = ?", (num, fold)
    ).fetchone()
    if row is None:
        return None
    snapshot = Snapshot(*row[:3])
    # A damaged snapshot is ignored: it is only a cache, and the log has everything.
    return snapshot if snapshot_crc(uid_crc(uid), snapshot) == row[3] else None


def _read_events(connection: apsw.Connection, uid: RunUid, after: Seq, limit: int) -> list[StoredEvent]:
    rows: Any = connection.execute(
        "SELECT e.seq, at, CAST(body AS BLOB), crc, r.cut FROM runs r JOIN events e ON e.run = r.num "
        "WHERE r.uid = ? AND e.seq > max(?, r.cut) ORDER BY e.seq LIMIT ?",
        (uid, after, limit),
    ).fetchall()
    first = Seq(max(after, rows[0][4])) if rows else after
    return checked_events(uid, first, [row[:4] for row in rows])


def _read_inbox(connection: apsw.Connection, uid: RunUid) -> list[Mail]:
    rows = connection.execute(
        "SELECT i.id, CAST(body AS BLOB), at, key, digest, crc FROM runs r JOIN inbox i ON i.run = r.num "
        "WHERE r.uid = ? ORDER BY n",
        (uid,),
    ).fetchall()
    return checked_mail(uid, rows)


def _release_run(connection: apsw.Connection, release: Release) -> Outcome:
    connection.execute(_RELEASE, (release.wake_at, release.uid, release.epoch, release.seq, release.mail_taken))
    if connection.changes():
        if release.snapshot is not None:
            num = connection.execute("SELECT num FROM runs WHERE uid = ?", (release.uid,)).get
            write_snapshot(connection, num, uid_crc(release.uid), release.snapshot)
        return Outcome.ACCEPTED
    outcome = judge_release(read_head(connection, release.uid), release)
    assert outcome is not Outcome.ACCEPTED, "the statement refuses what the judge allows"
    return outcome
