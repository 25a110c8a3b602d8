"""Mail: into an inbox once, out of it by identity. Always inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from weft.core.ids import Seq
from weft.ports.store import OVER_STATUSES, Append, KeyRow, Mail, Sent
from weft.stores.sqlite.rows import put_mail

Taken = tuple[int, str | None]
"""A waiting piece of mail that an append consumes: its number of arrival, and its key."""


def deliver(connection: apsw.Connection, mail: Mail) -> Sent:
    """Put mail into its run's inbox, once. Keys come before the state: a duplicate is one after the end too."""
    row = connection.execute("SELECT num, status, mail FROM runs WHERE uid = ?", (mail.to,)).fetchone()
    if row is None:
        return Sent.UNKNOWN_RUN
    num, status, count = row
    if mail.key is not None:
        known = read_key(connection, num, mail.key)
        if known is not None:
            return Sent.DUPLICATE if known.digest == mail.digest else Sent.KEY_REUSED
    if connection.execute("SELECT 1 FROM posted WHERE run = ? AND id = ?", (num, mail.id)).fetchone():
        return Sent.DUPLICATE
    if status in OVER_STATUSES:
        return Sent.OVER
    if mail.key is not None:
        write_key(connection, num, KeyRow(mail.key, mail.digest, Seq(0)))
    put_mail(connection, num, count + 1, mail)
    connection.execute("UPDATE runs SET mail = mail + 1, mail_at = coalesce(mail_at, ?) WHERE num = ?", (mail.at, num))
    return Sent.ACCEPTED


def read_taken(connection: apsw.Connection, num: int, ids: Sequence[str]) -> list[Taken]:
    """Which of these ids wait in the inbox."""
    query = "SELECT n, key FROM posted JOIN inbox USING (run, n) WHERE posted.run = ? AND posted.id = ?"
    rows = (connection.execute(query, (num, name)).fetchone() for name in ids)
    return [(n, key) for n, key in filter(None, rows)]


def take(connection: apsw.Connection, num: int, taken: Sequence[Taken], keys: Sequence[KeyRow]) -> int | None:
    """Delete consumed mail; when the oldest of the rest was sent.

    A key that its mail brought and that no event uses is free again: a rejection uses up no key.
    """
    connection.executemany("DELETE FROM inbox WHERE run = ? AND n = ?", [(num, n) for n, _ in taken])
    used = {row.key for row in keys}
    connection.executemany(
        "DELETE FROM keys WHERE run = ? AND key = ? AND seq = 0",
        [(num, key) for _, key in taken if key is not None and key not in used],
    )
    oldest = connection.execute("SELECT at FROM inbox WHERE run = ? ORDER BY n LIMIT 1", (num,)).fetchone()
    return None if oldest is None else int(oldest[0])


def is_key_taken(connection: apsw.Connection, num: int, append: Append, taken: Sequence[Taken]) -> bool:
    """Whether a key of the append was used. One that came by mail is written again with the events that consume it."""
    with_mail = {key for _, key in taken}
    for row in append.keys:
        known = read_key(connection, num, row.key)
        if known is not None and (known.seq or known.digest != row.digest or row.key not in with_mail):
            return True
    return False


def read_key(connection: apsw.Connection, num: int, key: str) -> KeyRow | None:
    """The row of a key, if it was used."""
    row = connection.execute("SELECT key, digest, seq FROM keys WHERE run = ? AND key = ?", (num, key)).fetchone()
    return None if row is None else KeyRow(*row)


def write_key(connection: apsw.Connection, num: int, row: KeyRow) -> None:
    """Use up a key, or note under which number its mail came into the log."""
    connection.execute(
        "INSERT OR REPLACE INTO keys (run, key, digest, seq) VALUES (?, ?, ?, ?)", (num, row.key, row.digest, row.seq)
    )
