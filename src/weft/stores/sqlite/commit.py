"""Writing a batch: each append is judged by itself, under the writer's lock, before anything of it is written.

A plain append (events and nothing else) is the hop that decides the engine's speed: one guarded UPDATE, and its events
in one INSERT together with those of all others.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec
from msgspec import UNSET

from weft.core.ids import HostId, RunId, RunUid
from weft.ports.store import OVER_STATUSES, Append, NewRun, Outcome, Snapshot
from weft.stores.checksums import event_crc, snapshot_crc, uid_crc
from weft.stores.rules import free_id, is_lean, may_reopen, merge_attributes, stays_over
from weft.stores.sqlite.mail import Taken, deliver, is_key_taken, read_taken, take, write_key
from weft.stores.sqlite.rows import Begun, index_attributes, insert_run, json_text, unindex_attributes

Numbers = dict[str, tuple[int, int]]
NUMBERS_MAX = 100_000

_GUARD = "WHERE num = ? AND epoch = ? AND seq = ? AND owner = ?"
_ADVANCE = f"UPDATE runs SET seq = ?, updated_at = ? {_GUARD}"
# Named only when it changes: its index would cost every append.
_ADVANCE_IDLE = f"UPDATE runs SET seq = ?, updated_at = ?, idle_until = ? {_GUARD}"
_END = (
    "UPDATE runs SET seq = ?, updated_at = ?, status = ?, ended_at = ?, owner = NULL, wake_at = NULL "
    "WHERE num = ? AND epoch = ? AND seq = ? AND owner = ? AND mail = ?"
)
_EVENTS = "INSERT INTO events (run, seq, at, body, crc) VALUES (?, ?, ?, ?, ?)"


class _Head(msgspec.Struct):
    """What a run's row says before the append."""

    num: int
    of_uid: int
    updated_at: int
    attributes: str
    taken: list[Taken] = []
    stays_over: bool = False


class Batch:
    """One transaction's appends, from one host."""

    def __init__(self, connection: apsw.Connection, host: HostId, numbers: Numbers) -> None:
        self._connection = connection
        self._host = host
        self._numbers = numbers
        self._events: list[tuple[int, int, int, str, int]] = []

    def write(self, appends: Sequence[Append]) -> list[Outcome]:
        outcomes = [self._one(append) for append in appends]
        if self._events:
            self._connection.executemany(_EVENTS, self._events)
        return outcomes

    def _one(self, append: Append) -> Outcome:
        """Most appends begin a run, carry it on or end it, and do nothing else: one statement is enough for each."""
        if append.events and is_lean(append):
            if append.create is not None:
                if append.status == "running":
                    return self._begun(append, append.create)
            elif append.status is None:
                return self._carried_on(append)
            elif self._ended(append):
                return Outcome.ACCEPTED
        return self._rich(append)

    def _begun(self, append: Append, new: NewRun) -> Outcome:
        last = append.events[-1]
        idle_until = None if append.idle_until is UNSET else append.idle_until
        num = insert_run(self._connection, new, new.id, Begun(last.seq, last.at, idle_until))
        if num is None:
            return Outcome.ID_TAKEN
        self._add_events(append, num, self._remember(new.uid, num)[1])
        return Outcome.ACCEPTED

    def _carried_on(self, append: Append) -> Outcome:
        found = self._numbers.get(append.uid) or self._number(append.uid)
        if found is None:
            return Outcome.STALE_EPOCH
        num, of_uid = found
        last = append.events[-1]
        guard = (num, append.epoch, append.seq, self._host)
        if append.idle_until is UNSET:
            self._connection.execute(_ADVANCE, (last.seq, last.at, *guard))
        else:
            self._connection.execute(_ADVANCE_IDLE, (last.seq, last.at, append.idle_until, *guard))
        if not self._connection.changes():
            return self._refusal(append, num)
        self._add_events(append, num, of_uid)
        return Outcome.ACCEPTED

    def _ended(self, append: Append) -> bool:
        """Whether this was the plain end of a run. What refuses it, or what else it is, the long way finds out."""
        found = self._numbers.get(append.uid)
        if found is None or append.status not in OVER_STATUSES or append.idle_until is not UNSET:
            return False
        num, of_uid = found
        last = append.events[-1]
        values = (last.seq, last.at, append.status, last.at)
        guard = (num, append.epoch, append.seq, self._host, append.mail_taken)
        self._connection.execute(_END, values + guard)
        if not self._connection.changes():
            return False
        self._add_events(append, num, of_uid)
        return True

    def _refusal(self, append: Append, num: int) -> Outcome:
        row = self._connection.execute("SELECT epoch, owner FROM runs WHERE num = ?", (num,)).fetchone()
        return Outcome.STALE_SEQ if row == (append.epoch, self._host) else Outcome.STALE_EPOCH

    def _rich(self, append: Append) -> Outcome:
        head = self._judge(append) if append.create is None else self._create(append.create)
        if isinstance(head, Outcome):
            return head
        self._add_events(append, head.num, head.of_uid)
        self._advance(append, head)
        for row in append.keys:
            write_key(self._connection, head.num, row)
        if append.refs:
            self._connection.executemany(
                "INSERT OR IGNORE INTO refs (hash, run) VALUES (?, ?)", [(digest, head.num) for digest in append.refs]
            )
        write_snapshot(self._connection, head.num, head.of_uid, append.snapshot)
        for child in append.children:
            self._add_child(child)
        for mail in append.mail:
            deliver(self._connection, mail)
        return Outcome.ACCEPTED

    def _judge(self, append: Append) -> _Head | Outcome:
        row = self._connection.execute(
            "SELECT num, epoch, owner, seq, mail, updated_at, attributes, status FROM runs WHERE uid = ?", (append.uid,)
        ).fetchone()
        # A run that is over or at rest has no owner, so nobody appends to it but to open it again.
        owner = self._host if append.reopen is None else None
        if row is None or row[1:3] != (append.epoch, owner):
            return Outcome.STALE_EPOCH
        num, _, _, seq, mail, updated_at, attributes, status = row
        if append.reopen is not None and not may_reopen(append, status):
            return Outcome.STALE_SEQ
        if seq != append.seq:
            return Outcome.STALE_SEQ
        taken = read_taken(self._connection, num, append.taken)
        if is_key_taken(self._connection, num, append, taken):
            return Outcome.KEY_TAKEN
        if append.status in OVER_STATUSES and mail != append.mail_taken:
            return Outcome.MAIL_WAITING
        of_uid = self._remember(append.uid, num)[1]
        return _Head(num, of_uid, updated_at, attributes, taken, stays_over=stays_over(append, status))

    def _create(self, new: NewRun) -> _Head | Outcome:
        num = insert_run(self._connection, new, new.id)
        if num is None:
            return Outcome.ID_TAKEN
        return _Head(num, self._remember(new.uid, num)[1], new.created_at, json_text(dict(new.attributes)))

    def _advance(self, append: Append, head: _Head) -> None:
        """Change the row, naming only the columns that change: each of the others would cost its index."""
        changes: dict[str, Any] = {}
        updated_at = head.updated_at
        if append.events:
            updated_at = append.events[-1].at
            changes |= {"seq": append.events[-1].seq, "updated_at": updated_at}
        if head.taken:
            changes["mail_at"] = take(self._connection, head.num, head.taken, append.keys)
        if append.resolved is not None:
            changes |= {"version": append.resolved.version, "style": append.resolved.style}
        if append.attributes is not None:
            changes["attributes"] = self._change_attributes(append, head)
        if append.idle_until is not UNSET:
            changes["idle_until"] = append.idle_until
        if append.reopen is not None and not head.stays_over:
            changes |= {"wake_at": append.reopen, "ended_at": None, "idle_until": None}
        if append.status is not None and not head.stays_over:
            changes["status"] = append.status
            if append.status in OVER_STATUSES:
                changes |= {"owner": None, "wake_at": None, "ended_at": updated_at}
        if changes:
            columns = ", ".join(f"{name} = ?" for name in changes)
            self._connection.execute(f"UPDATE runs SET {columns} WHERE num = ?", (*changes.values(), head.num))

    def _change_attributes(self, append: Append, head: _Head) -> str:
        old = msgspec.json.decode(head.attributes, type=dict[str, Any])
        merged = merge_attributes(old, append.attributes or {})
        unindex_attributes(self._connection, head.num, old)
        index_attributes(self._connection, head.num, merged)
        return json_text(merged)

    def _add_child(self, child: NewRun) -> None:
        if self._has("uid", child.uid):
            return
        insert_run(self._connection, child, free_id(child, self._is_id_taken))

    def _is_id_taken(self, id: RunId) -> bool:
        return self._has("id", id)

    def _has(self, column: str, value: str) -> bool:
        return self._connection.execute(f"SELECT 1 FROM runs WHERE {column} = ?", (value,)).fetchone() is not None

    def _add_events(self, append: Append, num: int, of_uid: int) -> None:
        for event in append.events:
            body = event.body
            crc = event_crc(of_uid, event.seq, event.at, body)
            self._events.append((num, event.seq, event.at, body.decode(), crc))

    def _number(self, uid: RunUid) -> tuple[int, int] | None:
        row = self._connection.execute("SELECT num FROM runs WHERE uid = ?", (uid,)).fetchone()
        return None if row is None else self._remember(uid, row[0])

    def _remember(self, uid: RunUid, num: int) -> tuple[int, int]:
        if len(self._numbers) >= NUMBERS_MAX:
            self._numbers.clear()
        found = self._numbers[uid] = (num, uid_crc(uid))
        return found


def write_snapshot(connection: apsw.Connection, num: int, of_uid: int, snapshot: Snapshot | None) -> None:
    """Keep the newest snapshot of each fold number."""
    if snapshot is not None:
        connection.execute(
            "INSERT OR REPLACE INTO snapshots (run, fold, seq, crc, body) VALUES (?, ?, ?, ?, ?)",
            (num, snapshot.fold, snapshot.seq, snapshot_crc(of_uid, snapshot), snapshot.body),
        )
