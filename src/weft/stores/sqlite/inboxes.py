"""Inboxes in SQLite. They are read only after another process wrote, which ``data_version`` tells at no cost."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.errors import Corrupt
from weft.ports.store import Addressed, Mail, News
from weft.stores.checksums import checked_inboxes
from weft.stores.rows import NOT_DOOMED
from weft.stores.sqlite.directory import is_any_claimable, read_next_wake
from weft.stores.sqlite.mail import deliver
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import RUN_COLUMNS, run_row
from weft.stores.sqlite.writer import Writer

FEW_ROWS = 100
"""How many rows are read on the event loop. More are read in a thread, so that other callers are not kept waiting."""

_WAITING = (
    "SELECT r.uid, i.id, CAST(i.body AS BLOB), i.at, i.key, i.digest, i.crc FROM ("
    "SELECT num, uid, mail_at FROM runs INDEXED BY runs_mail WHERE mail_at IS NOT NULL AND owner = ? "
    "AND fault IS NULL ORDER BY mail_at, uid LIMIT ?) AS r JOIN inbox i ON i.run = r.num "
    "ORDER BY r.mail_at, r.uid, i.n"
)


class SqliteInboxes:
    """The inboxes of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader
        self._version: int | None = None

    async def send_to(self, id: RunId, mail: Mail) -> Addressed:
        def work(connection: apsw.Connection) -> Addressed:
            found = connection.execute(
                f"SELECT {RUN_COLUMNS} FROM runs WHERE id = ? AND {NOT_DOOMED}", (id,)
            ).fetchone()
            if found is None:
                return Addressed(None, None)
            row = run_row(found)
            if row.owner is None or row.fault is not None:
                return Addressed(row, None)
            return Addressed(row, deliver(connection, msgspec.structs.replace(mail, to=row.uid)))

        return await self._writer.small(work)

    async def waiting(self, host: HostId, *, limit: int) -> Mapping[RunUid, Sequence[Mail] | Corrupt]:
        few = min(limit, FEW_ROWS)
        rows = self._reader.read(lambda connection: _waiting_rows(connection, host, few))
        if len(rows) < few or few == limit:
            return checked_inboxes(rows)
        return await self._reader.read_in_thread(lambda connection: _waiting(connection, host, limit))

    async def news(
        self, host: HostId, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> News | None:
        # Read on the writing connection, because its own commits do not change this version.
        version = await self._writer.read(lambda connection: int(connection.pragma("data_version")))
        if version == self._version:
            return None

        def work(connection: apsw.Connection) -> News:
            return News(
                inboxes=_waiting(connection, host, limit),
                claimable=is_any_claimable(connection, workflows, dead, now),
                wake_at=read_next_wake(connection, workflows, dead),
            )

        found = await self._reader.read_in_thread(work)
        self._version = version
        return found


def _waiting(connection: apsw.Connection, host: HostId, limit: int) -> dict[RunUid, Sequence[Mail] | Corrupt]:
    return checked_inboxes(_waiting_rows(connection, host, limit))


def _waiting_rows(connection: apsw.Connection, host: HostId, limit: int) -> list[Any]:
    return connection.execute(_WAITING, (host, limit)).fetchall()
