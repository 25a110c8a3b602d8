"""Convert rows of Postgres to values of the port, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.core.ids import RunUid
from weft.ports.new_run import NewRun
from weft.ports.store import Mail, RunRow, Snapshot
from weft.stores.checksums import checked_mail, mail_crc, snapshot_crc, uid_crc
from weft.stores.postgres.session import Record
from weft.stores.rows import initial_status, start_mail

RUN_COLUMNS = (
    "uid, id, workflow, version, style, status, seq, epoch, owner, mail, wake_at, idle_until, format, parent, "
    "created_at, updated_at, ended_at, attributes, fault, slot, inputs, priority, wal"
)
COLUMN_NAMES = tuple(RUN_COLUMNS.split(", "))
OF_RUNS = ", ".join(f"r.{name}" for name in COLUMN_NAMES)

Snapshots = tuple[list[int], list[int], list[int], list[int], list[bytes]]
"""Snapshots of several runs, by column: position of the run, fold, seq, checksum, body."""

_encode = msgspec.json.Encoder().encode


def run_row(record: Record) -> RunRow:
    """Convert a row that has at least ``RUN_COLUMNS``."""
    fields = {name: record[name] for name in COLUMN_NAMES}
    text = fields["attributes"]
    fields["attributes"] = {} if text == "{}" else msgspec.json.decode(text)
    return RunRow(**fields)


def new_fields(new: NewRun, wal: int | None = None) -> dict[str, Any]:
    """Return the fields of a run without events, for ``make_runs``. ``wal`` is the WAL that its owner uses."""
    rare = {"slot": new.slot, "inputs": new.inputs, "priority": new.priority} if new.slot or new.priority else {}
    if wal is not None and new.owner is not None:
        rare["wal"] = wal
    return {
        **rare,
        "uid": new.uid,
        "id": new.id,
        "workflow": new.workflow,
        "version": new.version,
        "style": new.style,
        "status": initial_status(new),
        "seq": 0,
        "updated_at": new.created_at,
        "owner": new.owner,
        "wake_at": new.wake_at,
        "format": new.format,
        "parent": new.parent,
        "created_at": new.created_at,
        "attributes": dict(new.attributes),
        "start": None if new.start is None else new.start.decode(),
        "start_crc": None if (mail := start_mail(new)) is None else mail_crc(mail),
    }


def mail_values(mail: Mail) -> tuple[Any, ...]:
    """Return the parameters of ``deliver``."""
    return mail.to, mail.id, mail.at, mail.key, mail.digest, mail.body.decode(), mail_crc(mail)


def parse_mail(uid: RunUid, rows: Sequence[Sequence[Any]]) -> list[Mail]:
    """Convert rows of ``id, body, at, key, digest, crc`` to mail. Raises Corrupt if a checksum is wrong."""
    return checked_mail(uid, ((name, body.encode(), *rest) for name, body, *rest in rows))


def snapshot_columns(snapshots: Sequence[tuple[RunUid, Snapshot | None]]) -> Snapshots:
    """Return the snapshots by column. Positions count from 1, as in Postgres arrays."""
    columns: Snapshots = ([], [], [], [], [])
    places, folds, seqs, crcs, bodies = columns
    for place, (uid, snapshot) in enumerate(snapshots, 1):
        if snapshot is not None:
            places.append(place)
            folds.append(snapshot.fold)
            seqs.append(snapshot.seq)
            crcs.append(snapshot_crc(uid_crc(uid), snapshot))
            bodies.append(snapshot.body)
    return columns
