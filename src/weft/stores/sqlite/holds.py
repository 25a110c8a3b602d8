"""Holds and the audit table in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import RunId, RunUid
from weft.ports.retention import NEWEST, AuditEntry
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_AUDIT = "INSERT INTO audit (at, verb, run, uid, workflow, by, reason, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ENTRY = "a.at, a.verb, a.run, a.uid, a.workflow, a.by, a.reason, a.details, a.num"


class SqliteHolds:
    """The holds of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def add(self, uid: RunUid, entry: AuditEntry) -> bool:
        def work(connection: apsw.Connection) -> bool:
            query = "SELECT 1 FROM runs WHERE uid = ?1 AND NOT EXISTS (SELECT 1 FROM holds WHERE uid = ?1)"
            if connection.execute(query, (uid,)).fetchone() is None:
                return False
            connection.execute("INSERT INTO holds VALUES (?, ?)", (uid, write_entry(connection, entry)))
            return True

        return await self._writer.small(work)

    async def end(self, uid: RunUid, entry: AuditEntry) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute("DELETE FROM holds WHERE uid = ?", (uid,))
            if not connection.changes():
                return False
            write_entry(connection, entry)
            return True

        return await self._writer.small(work)

    async def record(self, entry: AuditEntry) -> None:
        await self._writer.small(lambda connection: write_entry(connection, entry))

    async def find(self, uids: Sequence[RunUid]) -> Mapping[RunUid, AuditEntry]:
        text = (
            f"SELECT h.uid, {_ENTRY} FROM holds h JOIN audit a ON a.num = h.entry "
            "WHERE h.uid IN (SELECT value FROM json_each(?))"
        )
        wanted = msgspec.json.encode(uids).decode()
        return self._reader.read(
            lambda connection: {RunUid(uid): _entry_of_row(row) for uid, *row in connection.execute(text, (wanted,))}
        )

    async def audit(self, *, run: RunId | None = None, before: int = NEWEST, limit: int = 100) -> Sequence[AuditEntry]:
        where = "" if run is None else "a.run = ?1 AND "
        text = f"SELECT {_ENTRY} FROM audit a WHERE {where}a.num < ?2 ORDER BY a.num DESC LIMIT ?3"
        return await self._reader.read_in_thread(
            lambda connection: [_entry_of_row(row) for row in connection.execute(text, (run, before, limit))]
        )


def write_entry(connection: apsw.Connection, entry: AuditEntry) -> int:
    """Add an entry to the audit table. Returns its number."""
    details = msgspec.json.encode(entry.details).decode()
    head = (entry.at, entry.verb, entry.run, entry.uid, entry.workflow, entry.by, entry.reason)
    connection.execute(_AUDIT, (*head, details))
    return connection.last_insert_rowid()


def write_once(connection: apsw.Connection, entry: AuditEntry) -> bool:
    """Add an entry to the audit table, unless it has one about this run with the same digest."""
    text = "SELECT 1 FROM audit WHERE run = ? AND json_extract(details, '$.digest') = ?"
    if connection.execute(text, (entry.run, entry.details["digest"])).fetchone() is not None:
        return False
    write_entry(connection, entry)
    return True


def _entry_of_row(row: Sequence[Any]) -> AuditEntry:
    at, verb, run, uid, workflow, by, reason, details, number = row
    return AuditEntry(
        at=at,
        verb=verb,
        run=run,
        uid=uid,
        workflow=workflow,
        by=by,
        reason=reason,
        details=msgspec.json.decode(details),
        number=number,
    )
