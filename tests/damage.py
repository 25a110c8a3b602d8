"""Damage to what a SQLite store holds of a run, as a bad disk, another program or a newer Weft would leave it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from weft.stores.checksums import event_crc, uid_crc

KINDS = ("torn", "unknown", "checksum", "missing", "mail")


def damage(path: Path, run: str, kind: str) -> None:
    """Damage the last event of a run, or put mail into its inbox that cannot be read."""
    with contextlib.closing(sqlite3.connect(path)) as plain, plain:
        num, uid, seq = plain.execute("SELECT num, uid, seq FROM runs WHERE id = ?", (run,)).fetchone()
        plain.execute("DELETE FROM snapshots WHERE run = ?", (num,))
        if kind == "mail":
            columns = "(run, n, id, body, at, key, digest, crc)"
            plain.execute(f"INSERT INTO inbox {columns} VALUES (?, 99, 'bad', '{{}}', 1, NULL, '', 7)", (num,))
            plain.execute("UPDATE runs SET mail = mail + 1, mail_at = 1 WHERE num = ?", (num,))
            return
        where = "WHERE run = ? AND seq = ?"
        if kind == "missing":
            plain.execute(f"DELETE FROM events {where}", (num, seq))
            return
        if kind == "checksum":
            plain.execute(f"UPDATE events SET crc = crc + 1 {where}", (num, seq))
            return
        body = {"torn": '{"kind":"run_', "unknown": '{"kind":"something_new"}'}[kind]
        (at,) = plain.execute(f"SELECT at FROM events {where}", (num, seq)).fetchone()
        crc = event_crc(uid_crc(uid), seq, at, body.encode())
        plain.execute(f"UPDATE events SET body = ?, crc = ? {where}", (body, crc, num, seq))


def mend(path: Path, copy: Path, run: str) -> None:
    """Put the events of a run back as a copy of the store has them, and take bad mail away."""
    with contextlib.closing(sqlite3.connect(path)) as plain, contextlib.closing(sqlite3.connect(copy)) as sound, plain:
        (num,) = plain.execute("SELECT num FROM runs WHERE id = ?", (run,)).fetchone()
        events = sound.execute("SELECT run, seq, at, body, crc FROM events WHERE run = ?", (num,)).fetchall()
        plain.execute("DELETE FROM events WHERE run = ?", (num,))
        plain.executemany("INSERT INTO events (run, seq, at, body, crc) VALUES (?, ?, ?, ?, ?)", events)
        plain.execute("DELETE FROM inbox WHERE run = ?", (num,))
