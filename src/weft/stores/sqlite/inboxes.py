"""Inboxes in SQLite. They are read only after another process wrote, which ``data_version`` tells at no cost."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import apsw
import msgspec

from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.errors import Corrupt
from weft.ports.store import Addressed, Mail, News
from weft.stores.checksums import checked_inboxes
from weft.stores.rows import NOT_DOOMED
from weft.stores.sqlite.directory import is_any_claimable, read_next_wake
from weft.stores.sqlite.mail import deliver_mail
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import RUN_COLUMNS, run_row
from weft.stores.sqlite.writer import Writer

FEW_RUNS = 100
"""The mail of so many runs is read on the event loop. More is read in a thread, so that nobody else waits for it."""
RUNS_PER_READ = 500
"""How many inboxes are read in a thread at a time. Other readers wait for the same thread."""

_Key = tuple[int, str]
_FIRST: _Key = (-1, "")

_WAITING = (
    "SELECT r.mail_at, r.uid, i.id, CAST(i.body AS BLOB), i.at, i.key, i.digest, i.crc FROM ("
    "SELECT num, uid, mail_at FROM runs INDEXED BY runs_mail WHERE mail_at IS NOT NULL AND owner = ? "
    "AND fault IS NULL AND (mail_at, uid) > (?, ?) ORDER BY mail_at, uid LIMIT ?) AS r JOIN inbox i ON i.run = r.num "
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
            return Addressed(row, deliver_mail(connection, msgspec.structs.replace(mail, to=row.uid)))

        return await self._writer.small(work)

    async def waiting(self, host: HostId, *, limit: int) -> Mapping[RunUid, Sequence[Mail] | Corrupt]:
        found, last = self._reader.read(
            lambda connection: _read_waiting_inboxes(connection, host, min(limit, FEW_RUNS))
        )
        while last is not None and len(found) < limit:
            most, after = min(limit - len(found), RUNS_PER_READ), last
            more, last = await self._reader.read_in_thread(
                partial(_read_waiting_inboxes, host=host, limit=most, after=after)
            )
            found |= more
        return found

    async def news(
        self, host: HostId, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> News | None:
        # Read on the writing connection, because its own commits do not change this version.
        version = await self._writer.read(lambda connection: int(connection.pragma("data_version")))
        if version == self._version:
            return None

        def work(connection: apsw.Connection) -> News:
            return News(
                inboxes=_read_waiting_inboxes(connection, host, limit)[0],
                claimable=is_any_claimable(connection, workflows, dead, now),
                wake_at=read_next_wake(connection, workflows, dead),
            )

        found = await self._reader.read_in_thread(work)
        self._version = version
        return found


def _read_waiting_inboxes(
    connection: apsw.Connection, host: HostId, limit: int, after: _Key = _FIRST
) -> tuple[dict[RunUid, Sequence[Mail] | Corrupt], _Key | None]:
    """Read the inboxes of some runs. Also returns the key of the last run if there may be more."""
    rows: list[Any] = connection.execute(_WAITING, (host, *after, limit)).fetchall()
    found = checked_inboxes(row[1:] for row in rows)
    return found, rows[-1][:2] if len(found) == limit else None
