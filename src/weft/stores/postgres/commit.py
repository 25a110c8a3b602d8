"""Write a batch with one call of the SQL function ``commit_batch``, which judges and writes the appends.

The server judges all appends of a call by the state before the call. If the mail or the children of one append may
change how a later append is judged, the later one goes into a second call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET

from weft.core.ids import HostId
from weft.ports.new_run import NewRun
from weft.ports.store import OVER_STATUSES, Append, Outcome
from weft.stores.checksums import event_crc, uid_crc
from weft.stores.postgres.rows import mail_values, new_fields, snapshot_columns
from weft.stores.rows import json_text

COMMIT = f"SELECT commit_batch({', '.join(f'${n}' for n in range(1, 25))})"

NumberedAppends = list[tuple[int, Append]]
"""Appends with their positions in the batch."""


def split_calls(batch: Sequence[Append]) -> Iterator[NumberedAppends]:
    """Split a batch into as few calls of ``commit_batch`` as possible, nearly always one."""
    touched: set[str] = set()
    current: NumberedAppends = []
    for place, append in enumerate(batch):
        names = {append.uid} if append.create is None else {append.uid, append.create.id}
        if current and touched & names and _is_sensitive(append):
            yield current
            touched, current = set(), []
        current.append((place, append))
        touched.update(mail.to for mail in append.mail)
        for child in append.children:
            touched.update((child.uid, child.id))
    if current:
        yield current


def _is_sensitive(append: Append) -> bool:
    """Return whether mail or children of other appends may change how this one is judged."""
    return append.status in OVER_STATUSES or bool(append.keys) or append.create is not None or append.epoch == 1


def commit_values(appends: Sequence[Append], host: HostId, wal: int | None = None) -> list[Any]:
    """Return the parameters of ``COMMIT``. ``wal`` is the WAL that the host uses."""
    over = [append.status in OVER_STATUSES for append in appends]
    heads: list[Any] = [
        host,
        [append.uid for append in appends],
        [append.epoch for append in appends],
        [append.seq for append in appends],
        [append.events[-1].seq if append.events else append.seq for append in appends],
        [append.events[-1].at if append.events else None for append in appends],
        [append.status for append in appends],
        [append.mail_taken if ends else 0 for append, ends in zip(appends, over, strict=True)],
        [append.reopen for append in appends],
        [append.create is not None for append in appends],
        [None if append.idle_until is UNSET else append.idle_until for append in appends],
        [append.idle_until is not UNSET for append in appends],
    ]
    snapshots = snapshot_columns([(append.uid, append.snapshot) for append in appends])
    targets = [mail.to for append in appends for mail in append.mail]
    return [*heads, *_event_columns(appends), *snapshots, targets, _rare_parts(appends, wal)]


def _event_columns(appends: Sequence[Append]) -> tuple[list[int], list[int], list[int], list[int], list[str]]:
    places, seqs, ats, crcs, bodies = [], [], [], [], []
    for place, append in enumerate(appends, 1):
        uid_sum = uid_crc(append.uid)
        for event in append.events:
            places.append(place)
            seqs.append(int(event.seq))
            ats.append(int(event.at))
            crcs.append(event_crc(uid_sum, event.seq, event.at, event.body))
            bodies.append(event.body.decode())
    return places, seqs, ats, crcs, bodies


def _rare_parts(appends: Sequence[Append], wal: int | None) -> str | None:
    """Return the parts that only some appends have, as JSON; None if no append has any."""
    parts: dict[str, list[Any]] = {}
    for place, append in enumerate(appends, 1):
        if append.create is not None:
            parts.setdefault("births", []).append(_new_row(append, append.create, wal))
        if append.taken:
            parts.setdefault("taken", []).extend({"of": place, "id": name} for name in append.taken)
        if append.keys:
            parts.setdefault("keys", []).extend(
                {"of": place, "key": row.key, "digest": row.digest, "seq": row.seq} for row in append.keys
            )
        if append.resolved is not None:
            resolved = {"of": place, "version": append.resolved.version, "style": append.resolved.style}
            parts.setdefault("resolved", []).append(resolved)
        if append.attributes is not None:
            parts.setdefault("attributes", []).append({"of": place, "changes": append.attributes})
        if append.refs:
            parts.setdefault("refs", []).extend({"of": place, "hash": digest} for digest in set(append.refs))
        if append.children:
            parts.setdefault("children", []).extend(
                {"of": place, "child": new_fields(child, wal)} for child in append.children
            )
        for mail in append.mail:
            names = ("target", "id", "at", "key", "digest", "body", "crc")
            parts.setdefault("mail", []).append({"of": place, **dict(zip(names, mail_values(mail), strict=True))})
    return json_text(parts) if parts else None


def _new_row(append: Append, new: NewRun, wal: int | None) -> dict[str, Any]:
    """Return the row of a run that is created with its first events, and perhaps ends with them."""
    fields = new_fields(new, wal)
    if append.events:
        fields |= {"seq": append.events[-1].seq, "updated_at": append.events[-1].at}
    if append.idle_until is not UNSET:
        fields["idle_until"] = append.idle_until
    if append.status is not None:
        fields["status"] = append.status
        if append.status in OVER_STATUSES:
            fields["ended_at"] = fields["updated_at"]
    return fields


def parse_outcomes(answer: Sequence[str]) -> list[Outcome]:
    """Convert the words that the server returns into outcomes."""
    return [Outcome(word) for word in answer]
