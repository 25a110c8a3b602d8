"""Inboxes in Postgres. They are read in one query, after a hint from another process."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.errors import Corrupt
from weft.ports.store import Addressed, Mail, News, Sent
from weft.stores.checksums import checked_inboxes
from weft.stores.postgres.directory import NEXT_WAKE, REASONS, PostgresDirectory, workflow_columns
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.pool import Pool, fetch, fetch_value
from weft.stores.postgres.rows import mail_values
from weft.stores.postgres.session import Record

_MAIL = "uid, id, body, at, key, digest, crc"


def _waiting_mail_query(host: str, limit: str) -> str:
    return (
        "SELECT r.uid, i.id, i.body, i.at, i.key, i.digest, i.crc, r.mail_at, i.n FROM ("
        f"SELECT num, uid, mail_at FROM runs WHERE mail_at IS NOT NULL AND owner = {host} "
        f"AND fault IS NULL ORDER BY mail_at, uid LIMIT {limit}) AS r JOIN inbox i ON i.run = r.num"
    )


WAITING = f"SELECT {_MAIL} FROM ({_waiting_mail_query('$1', '$2')}) AS m ORDER BY mail_at, uid, n"
NEWS = (
    f"SELECT EXISTS (SELECT 1 FROM ({REASONS}) AS reasons) AS claimable, ({NEXT_WAKE}) AS wake_at, "
    f"{', '.join(f'm.{name}' for name in _MAIL.split(', '))} "
    f"FROM (SELECT 1) AS one LEFT JOIN ({_waiting_mail_query('$6', '$7')}) AS m ON true ORDER BY m.mail_at, m.uid, m.n"
)


class PostgresInboxes:
    """The inboxes of a Postgres store."""

    def __init__(self, pool: Pool, directory: PostgresDirectory, hints: Hints) -> None:
        self._pool = pool
        self._directory = directory
        self._hints = hints

    async def send_to(self, id: RunId, mail: Mail) -> Addressed:
        """Send mail. The first statement reads the uid, which the checksum covers; the second one judges and writes."""
        row = await self._directory.find(id)
        if row is None or row.owner is None or row.fault is not None:
            return Addressed(row, None)
        values = mail_values(msgspec.structs.replace(mail, to=row.uid))
        sent = Sent(await fetch_value(self._pool, "SELECT deliver($1, $2, $3, $4, $5, $6, $7)", *values))
        if sent is Sent.ACCEPTED:
            self._hints.send()
        return Addressed(row, sent)

    async def waiting(self, host: HostId, *, limit: int) -> Mapping[RunUid, Sequence[Mail] | Corrupt]:
        return _inboxes_of_rows(await fetch(self._pool, WAITING, host, limit))

    async def news(
        self, host: HostId, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> News | None:
        if not await self._hints.take_hint():
            return None
        names, versions = workflow_columns(workflows)
        rows = await fetch(self._pool, NEWS, names, versions, list(dead), now, 1, host, limit)
        claimable, wake_at = rows[0][:2]
        mail = [row[2:] for row in rows if row["uid"] is not None]
        return News(inboxes=_inboxes_of_rows(mail), claimable=claimable, wake_at=wake_at)


def _inboxes_of_rows(rows: Sequence[Record]) -> dict[RunUid, Sequence[Mail] | Corrupt]:
    return checked_inboxes((uid, name, body.encode(), *rest) for uid, name, body, *rest in rows)
