"""Put mail into inboxes and consume it, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from weft.core.ids import Seq
from weft.ports.store import KeyRow, Mail, Sent
from weft.stores.judge import NO_KEYS, KeyFacts, judge_mail
from weft.stores.sqlite.rows import RunHead, put_mail, read_head

Taken = tuple[int, str | None]
"""A piece of mail that an append consumes: its number in order of arrival, and its key."""


def deliver_mail(connection: apsw.Connection, mail: Mail) -> Sent:
    """Put mail into the inbox of its run, once."""
    run = read_head(connection, mail.to)
    if run is None:
        return judge_mail(None, mail, None, posted=False)
    key = None if mail.key is None else find_key_row(connection, run.num, mail.key)
    posted = connection.execute("SELECT 1 FROM posted WHERE run = ? AND id = ?", (run.num, mail.id)).fetchone()
    sent = judge_mail(run, mail, key, posted=posted is not None)
    if sent is not Sent.ACCEPTED:
        return sent
    if mail.key is not None:
        write_key(connection, run.num, KeyRow(mail.key, mail.digest, Seq(0)))
    put_mail(connection, run.num, run.mail + 1, mail)
    connection.execute(
        "UPDATE runs SET mail = mail + 1, mail_at = coalesce(mail_at, ?) WHERE num = ?", (mail.at, run.num)
    )
    return sent


def read_taken(connection: apsw.Connection, num: int, ids: Sequence[str]) -> list[Taken]:
    """Return number and key of the mail with these ids that is still in the inbox."""
    query = "SELECT n, key FROM posted JOIN inbox USING (run, n) WHERE posted.run = ? AND posted.id = ?"
    rows = (connection.execute(query, (num, name)).fetchone() for name in ids)
    return [(n, key) for n, key in filter(None, rows)]


def consume(connection: apsw.Connection, num: int, taken: Sequence[Taken], keys: Sequence[KeyRow]) -> int | None:
    """Delete consumed mail. Returns when the oldest remaining mail was sent, or None.

    A key that came with the mail becomes free unless an event uses it, so a rejected command uses up no key.
    """
    connection.executemany("DELETE FROM inbox WHERE run = ? AND n = ?", [(num, n) for n, _ in taken])
    used = {row.key for row in keys}
    connection.executemany(
        "DELETE FROM keys WHERE run = ? AND key = ? AND seq = 0",
        [(num, key) for _, key in taken if key is not None and key not in used],
    )
    oldest = connection.execute("SELECT at FROM inbox WHERE run = ? ORDER BY n LIMIT 1", (num,)).fetchone()
    return None if oldest is None else int(oldest[0])


def read_key_facts(
    connection: apsw.Connection, run: RunHead | None, rows: Sequence[KeyRow], taken: Sequence[Taken]
) -> KeyFacts:
    """Read the facts that decide whether an append that consumes ``taken`` may use its keys."""
    if run is None or not rows:
        return NO_KEYS
    known = (find_key_row(connection, run.num, row.key) for row in rows)
    return KeyFacts({row.key: row for row in known if row is not None}, {key for _, key in taken})


def find_key_row(connection: apsw.Connection, num: int, key: str) -> KeyRow | None:
    """Return the row of a key, or None if the key is free."""
    row = connection.execute("SELECT key, digest, seq FROM keys WHERE run = ? AND key = ?", (num, key)).fetchone()
    return None if row is None else KeyRow(*row)


def write_key(connection: apsw.Connection, num: int, row: KeyRow) -> None:
    """Write the row of a key. Its ``seq`` is 0 until the command is in the log."""
    connection.execute(
        "INSERT OR REPLACE INTO keys (run, key, digest, seq) VALUES (?, ?, ?, ?)", (num, row.key, row.digest, row.seq)
    )
