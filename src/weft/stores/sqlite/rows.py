"""Read and write rows of runs and mail in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import Epoch, HostId, RunId, RunUid, Seq
from weft.ports.new_run import NewRun
from weft.ports.store import Mail, RunRow
from weft.stores.checksums import mail_crc
from weft.stores.rows import as_json, canonical_json, initial_epoch, initial_status, json_text, start_mail

RUN_COLUMNS = (
    "uid, id, workflow, version, style, status, seq, epoch, owner, mail, wake_at, idle_until, format, parent, "
    "created_at, updated_at, ended_at, attributes, fault, slot, inputs, priority"
)
_HEAD = "SELECT num, status, seq, epoch, owner, mail, updated_at, attributes FROM runs WHERE uid = ?"
_NAMES = RUN_COLUMNS.split(", ")

INSERT_RUN = (
    "INSERT INTO runs (uid, id, workflow, version, style, status, seq, updated_at, epoch, owner, wake_at, "
    "idle_until, format, parent, created_at, attributes, mail, mail_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)


def run_row(values: Sequence[Any]) -> RunRow:
    """Convert a row selected by ``RUN_COLUMNS``."""
    fields = dict(zip(_NAMES, values, strict=True))
    text = fields["attributes"]
    fields["attributes"] = {} if text == "{}" else msgspec.json.decode(text)
    return RunRow(**fields)


class RunHead(msgspec.Struct, frozen=True):
    """The row of a run before a write: the facts by which the write is judged, and the values that it changes."""

    num: int
    status: str
    seq: Seq
    epoch: Epoch
    owner: HostId | None
    mail: int
    updated_at: int
    attributes: str


def read_head(connection: apsw.Connection, uid: RunUid) -> RunHead | None:
    """Return the head of a run, or None if there is no such run."""
    row = connection.execute(_HEAD, (uid,)).fetchone()
    return None if row is None else RunHead(*row)


def new_head(new: NewRun, num: int) -> RunHead:
    """Return the head of a run whose row was just inserted."""
    return RunHead(
        num,
        initial_status(new),
        Seq(0),
        initial_epoch(new),
        new.owner,
        0 if new.start is None else 1,
        new.created_at,
        json_text(dict(new.attributes)),
    )


class FirstEvents(msgspec.Struct, frozen=True):
    """Number and time of the last event of a run that is inserted with its first events, and its ``idle_until``."""

    seq: int
    at: int
    idle_until: int | None


def insert_run(connection: apsw.Connection, new: NewRun, id: RunId, initial: FirstEvents | None = None) -> int | None:
    """Insert the row of a run, its attributes and its start mail. Returns None if its id or uid is taken."""
    initial = initial or FirstEvents(0, new.created_at, None)
    attributes = as_json(new.attributes)
    mail = start_mail(new)
    connection.execute(
        INSERT_RUN,
        (
            new.uid,
            id,
            new.workflow,
            new.version,
            new.style,
            initial_status(new),
            initial.seq,
            initial.at,
            initial_epoch(new),
            new.owner,
            new.wake_at,
            initial.idle_until,
            new.format,
            new.parent,
            new.created_at,
            json_text(attributes),
            0 if mail is None else 1,
            None if mail is None else mail.at,
        ),
    )
    if not connection.changes():
        return None
    num = connection.last_insert_rowid()
    if attributes:
        index_attributes(connection, num, attributes)
    if new.slot is not None or new.priority:
        # Few runs have these, and binding more values would slow down all others.
        connection.execute(
            "UPDATE runs SET slot = ?, inputs = ?, priority = ? WHERE num = ?",
            (new.slot, new.inputs, new.priority, num),
        )
    if mail is not None:
        put_mail(connection, num, 1, mail)
    return num


def put_mail(connection: apsw.Connection, num: int, n: int, mail: Mail) -> None:
    """Insert the ``n``-th piece of mail of a run. The caller updates the count in the row of the run."""
    connection.execute("INSERT INTO posted (run, id, n) VALUES (?, ?, ?)", (num, mail.id, n))
    connection.execute(
        "INSERT INTO inbox (run, n, id, at, key, digest, body, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (num, n, mail.id, mail.at, mail.key, mail.digest, mail.body.decode(), mail_crc(mail)),
    )


def index_attributes(connection: apsw.Connection, num: int, attributes: dict[str, Any]) -> None:
    """Index the attributes of a run."""
    connection.executemany(
        "INSERT INTO attributes (name, value, run) VALUES (?, ?, ?)",
        [(name, canonical_json(value), num) for name, value in attributes.items()],
    )


def unindex_attributes(connection: apsw.Connection, num: int, attributes: dict[str, Any]) -> None:
    """Remove attributes of a run from the index."""
    connection.executemany(
        "DELETE FROM attributes WHERE name = ? AND value = ? AND run = ?",
        [(name, canonical_json(value), num) for name, value in attributes.items()],
    )
