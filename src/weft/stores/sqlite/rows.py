"""How rows become the port's values, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from weft.core.ids import RunId, RunUid
from weft.ports.store import Mail, NewRun, RunRow
from weft.stores.rules import canonical, plain, start_mail

RUN_COLUMNS = (
    "uid, id, workflow, version, style, status, seq, epoch, owner, mail, wake_at, format, parent, "
    "created_at, updated_at, ended_at, attributes, fault"
)
_NAMES = RUN_COLUMNS.split(", ")

INSERT_RUN = (
    "INSERT INTO runs (uid, id, workflow, version, style, status, seq, updated_at, epoch, owner, wake_at, "
    "format, parent, created_at, attributes, mail, mail_at) "
    "VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)


def run_row(values: Sequence[Any]) -> RunRow:
    """A row selected by ``RUN_COLUMNS``."""
    fields = dict(zip(_NAMES, values, strict=True))
    text = fields["attributes"]
    fields["attributes"] = {} if text == "{}" else msgspec.json.decode(text)
    return RunRow(**fields)


def insert_run(
    connection: apsw.Connection, new: NewRun, id: RunId, *, seq: int = 0, at: int | None = None
) -> int | None:
    """Make a row, with its attributes and its start mail; its number. None: the id or uid is taken.

    ``seq``, ``at``: of its last event, if it is made with some.
    """
    attributes = plain(new.attributes)
    mail = start_mail(new)
    connection.execute(
        INSERT_RUN,
        (
            new.uid,
            id,
            new.workflow,
            new.version,
            new.style,
            seq,
            new.created_at if at is None else at,
            0 if new.owner is None else 1,
            new.owner,
            new.wake_at,
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
    if mail is not None:
        put_mail(connection, num, 1, mail)
    return num


def put_mail(connection: apsw.Connection, num: int, n: int, mail: Mail) -> None:
    """Rows of the ``n``-th piece of mail of a run; the count on the run is the caller's."""
    connection.execute("INSERT INTO posted (run, id, n) VALUES (?, ?, ?)", (num, mail.id, n))
    connection.execute(
        "INSERT INTO inbox (run, n, id, at, key, digest, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (num, n, mail.id, mail.at, mail.key, mail.digest, mail.body.decode()),
    )


def mail_of(uid: RunUid, rows: Iterable[Sequence[Any]]) -> list[Mail]:
    """Mail selected by ``id, body, at, key, digest``."""
    return [
        Mail(id=name, to=uid, body=body.encode(), at=at, key=key, digest=digest) for name, body, at, key, digest in rows
    ]


def index_attributes(connection: apsw.Connection, num: int, attributes: dict[str, Any]) -> None:
    """Let a run be found by its attributes."""
    connection.executemany(
        "INSERT INTO attributes (name, value, run) VALUES (?, ?, ?)",
        [(name, canonical(value), num) for name, value in attributes.items()],
    )


def unindex_attributes(connection: apsw.Connection, num: int, attributes: dict[str, Any]) -> None:
    """Let it no longer be found by these."""
    connection.executemany(
        "DELETE FROM attributes WHERE name = ? AND value = ? AND run = ?",
        [(name, canonical(value), num) for name, value in attributes.items()],
    )


def json_text(value: dict[str, Any]) -> str:
    """Attributes as the row keeps them."""
    return msgspec.json.encode(value).decode() if value else "{}"
