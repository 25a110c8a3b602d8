"""Write a batch of appends. Each append is judged on its own, under the writer's lock, before any of it is written.

Most appends have events and nothing else. Such an append costs one guarded UPDATE, and the events of all appends go
into one INSERT.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import apsw
import msgspec
from msgspec import UNSET

from weft.core.ids import HostId, RunId, RunUid
from weft.ports.new_run import NewRun
from weft.ports.retention import AuditEntry
from weft.ports.store import OVER_STATUSES, Append, Outcome, Snapshot
from weft.stores.checksums import event_crc, snapshot_crc, uid_crc
from weft.stores.judge import (
    has_no_extras,
    judge_append,
    judge_create,
    judge_recorded,
    judge_together,
    only_adds_to_ended,
    takes_slot,
)
from weft.stores.rows import free_id, json_text, merge_attributes
from weft.stores.sqlite.budgets import apply_moves
from weft.stores.sqlite.holds import write_once
from weft.stores.sqlite.keys import FORGET_TASKS, STILL_COUNTS
from weft.stores.sqlite.mail import Taken, consume, deliver_mail, read_key_facts, read_taken, write_key
from weft.stores.sqlite.rows import (
    FirstEvents,
    RunHead,
    index_attributes,
    insert_run,
    new_head,
    read_head,
    unindex_attributes,
)
from weft.stores.sqlite.starts import is_slot_taken

_ACCEPTED = Outcome.ACCEPTED
Numbers = dict[str, tuple[int, int]]
NUMBERS_MAX = 100_000

GUARD = "WHERE num = ? AND epoch = ? AND seq = ? AND owner = ?"
"""Accepts the same appends as ``judge_append``, among those that neither end nor reopen a run and have no keys."""
_ADVANCE = f"UPDATE runs SET seq = ?, updated_at = ? {GUARD}"
# A separate statement, because updating the index of ``idle_until`` would slow down every append.
_ADVANCE_IDLE = f"UPDATE runs SET seq = ?, updated_at = ?, idle_until = ? {GUARD}"
# An owned run has no time to wake at. Setting it again would cost two indexes, so the guard checks it instead.
_END = (
    "UPDATE runs SET seq = ?, updated_at = ?, status = ?, ended_at = ?, owner = NULL "
    f"{GUARD} AND mail = ? AND wake_at IS NULL"
)
# After a retry, nobody may take a task that ended with the run.
_END_TASKS = f"DELETE FROM tasks WHERE run = ? AND NOT ({STILL_COUNTS})"
# Asked before that, because few runs have tasks in the table, and a DELETE opens each of its indexes.
_HAS_TASKS = "SELECT 1 FROM tasks WHERE run = ? LIMIT 1"
_ANY_TASKS = "SELECT 1 FROM tasks LIMIT 1"
EVENTS_PER_INSERT = 8
"""Binding and running a statement costs as much as the row itself, so several events are inserted by one."""


def _insert_text(events: int) -> str:
    return f"INSERT INTO events (run, seq, at, body, crc) VALUES {', '.join(['(?, ?, ?, ?, ?)'] * events)}"


_INSERT_EVENT, _INSERT_EVENTS = _insert_text(1), _insert_text(EVENTS_PER_INSERT)


class CommitBatch:
    """The appends of one transaction, from one host."""

    def __init__(self, connection: apsw.Connection, host: HostId, numbers: Numbers) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        """For statements without a result: a cursor for each of them would cost a tenth of the statement."""
        self._host = host
        self._numbers = numbers
        self._events: list[tuple[int, int, int, str, int]] = []
        self._any_tasks: bool | None = None
        """Whether any run has tasks in the table. None: not asked yet."""

    def write(self, appends: Sequence[Append]) -> list[Outcome]:
        """Judge each append and write those that are allowed. Returns one outcome per append."""
        outcomes = [self._write_one(append) for append in appends]
        self._insert_events()
        return outcomes

    def write_run(self, append: Append) -> Outcome:
        """Create a run with its whole log."""
        outcome = self._write_any(append)
        self._insert_events()
        return outcome

    def write_together(self, appends: Sequence[Append], entry: AuditEntry | None) -> list[Outcome]:
        """Write all appends if all of them are allowed, whoever owns the runs."""
        heads = [read_head(self._connection, append.uid) for append in appends]
        outcomes = [judge_together(head, append) for head, append in zip(heads, appends, strict=True)]
        if all(outcome is Outcome.ACCEPTED for outcome in outcomes):
            if entry is not None and not write_once(self._connection, entry):
                return judge_recorded(appends)
            for append, head in zip(appends, heads, strict=True):
                if head is not None:
                    self._write_parts(append, head, read_taken(self._connection, head.num, append.taken))
            self._insert_events()
        return outcomes

    def _write_one(self, append: Append) -> Outcome:
        """Write an append with one guarded statement if it only begins, continues or ends a run.

        If the guard fails, ``_write_any`` reads the row and judges the append.
        """
        if append.events and has_no_extras(append):
            if append.create is not None:
                if append.status == "running":
                    return self._write_first(append, append.create)
            elif self._try_advance(append) if append.status is None else self._try_end(append):
                return _ACCEPTED
        return self._write_any(append)

    def _write_first(self, append: Append, new: NewRun) -> Outcome:
        last = append.events[-1]
        idle_until = None if append.idle_until is UNSET else append.idle_until
        num = insert_run(self._connection, new, new.id, FirstEvents(last.seq, last.at, idle_until))
        if num is not None:
            self._add_events(append, num, self._remember_number(new.uid, num))
        return judge_create(taken=num is None)

    def _try_advance(self, append: Append) -> bool:
        found = self._numbers.get(append.uid)
        if found is None:
            return False
        num, uid_sum = found
        last = append.events[-1]
        guard = (num, append.epoch, append.seq, self._host)
        if append.idle_until is UNSET:
            self._execute(_ADVANCE, (last.seq, last.at, *guard))
        else:
            self._execute(_ADVANCE_IDLE, (last.seq, last.at, append.idle_until, *guard))
        if not self._connection.changes():
            return False
        self._add_events(append, num, uid_sum)
        return True

    def _try_end(self, append: Append) -> bool:
        found = self._numbers.get(append.uid)
        if found is None or append.status not in OVER_STATUSES or append.idle_until is not UNSET:
            return False
        num, uid_sum = found
        last = append.events[-1]
        values = (last.seq, last.at, append.status, last.at)
        guard = (num, append.epoch, append.seq, self._host, append.mail_taken)
        self._execute(_END, values + guard)
        if not self._connection.changes():
            return False
        self._end_tasks(num)
        self._add_events(append, num, uid_sum)
        return True

    def _write_any(self, append: Append) -> Outcome:
        taken: list[Taken] = []
        if append.create is not None:
            head = self._create_run(append.create)
            outcome = judge_create(taken=head is None)
        else:
            head = read_head(self._connection, append.uid)
            if head is not None:
                taken = read_taken(self._connection, head.num, append.taken)
            keys = read_key_facts(self._connection, head, append.keys, taken)
            taken_slot = takes_slot(append) and is_slot_taken(self._connection, append.uid)
            outcome = judge_append(head, append, self._host, keys, is_slot_taken=taken_slot)
        if head is not None and outcome is Outcome.ACCEPTED:
            self._write_parts(append, head, taken)
        return outcome

    def _write_parts(self, append: Append, head: RunHead, taken: Sequence[Taken]) -> None:
        uid_sum = self._remember_number(append.uid, head.num)
        self._add_events(append, head.num, uid_sum)
        self._update_row(append, head, taken)
        for row in append.keys:
            write_key(self._connection, head.num, row)
        if append.refs:
            self._connection.executemany(
                "INSERT OR IGNORE INTO refs (hash, run) VALUES (?, ?)", [(digest, head.num) for digest in append.refs]
            )
        write_snapshot(self._connection, head.num, uid_sum, append.snapshot)
        for child in append.children:
            self._add_child(child)
        for mail in append.mail:
            deliver_mail(self._connection, mail)
        if append.ledger:
            apply_moves(self._connection, append, head.num)

    def _create_run(self, new: NewRun) -> RunHead | None:
        num = insert_run(self._connection, new, new.id)
        return None if num is None else new_head(new, num)

    def _update_row(self, append: Append, head: RunHead, taken: Sequence[Taken]) -> None:
        """Update the row. Names only the columns that change, because each column costs an update of its index."""
        only_adds = only_adds_to_ended(append, head.status)
        changes: dict[str, Any] = {}
        updated_at = head.updated_at
        if append.events:
            updated_at = append.events[-1].at
            changes |= {"seq": append.events[-1].seq, "updated_at": updated_at}
        if taken:
            changes["mail_at"] = consume(self._connection, head.num, taken, append.keys)
        if append.resolved is not None:
            changes |= {"version": append.resolved.version, "style": append.resolved.style}
        if append.attributes is not None:
            changes["attributes"] = self._change_attributes(append, head)
        if append.idle_until is not UNSET:
            changes["idle_until"] = append.idle_until
        if append.reopen is not None and not only_adds:
            changes |= {"wake_at": append.reopen, "ended_at": None, "idle_until": None}
        if append.status is not None and not only_adds:
            changes["status"] = append.status
            if append.status in OVER_STATUSES:
                changes |= {"owner": None, "wake_at": None, "ended_at": updated_at}
                self._end_tasks(head.num)
        if append.reopen is not None and not only_adds and head.status in OVER_STATUSES:
            self._connection.execute(FORGET_TASKS, (head.num,))
        if changes:
            columns = ", ".join(f"{name} = ?" for name in changes)
            self._connection.execute(f"UPDATE runs SET {columns} WHERE num = ?", (*changes.values(), head.num))

    def _end_tasks(self, num: int) -> None:
        if self._any_tasks is None:
            self._any_tasks = self._connection.execute(_ANY_TASKS).fetchone() is not None
        if self._any_tasks and self._connection.execute(_HAS_TASKS, (num,)).fetchone() is not None:
            self._connection.execute(_END_TASKS, (num,))

    def _change_attributes(self, append: Append, head: RunHead) -> str:
        old = msgspec.json.decode(head.attributes, type=dict[str, Any])
        merged = merge_attributes(old, append.attributes or {})
        unindex_attributes(self._connection, head.num, old)
        index_attributes(self._connection, head.num, merged)
        return json_text(merged)

    def _add_child(self, child: NewRun) -> None:
        if self._has_run_with("uid", child.uid):
            return
        insert_run(self._connection, child, free_id(child, self._is_id_taken))

    def _is_id_taken(self, id: RunId) -> bool:
        return self._has_run_with("id", id)

    def _has_run_with(self, column: str, value: str) -> bool:
        return self._connection.execute(f"SELECT 1 FROM runs WHERE {column} = ?", (value,)).fetchone() is not None

    def _add_events(self, append: Append, num: int, uid_sum: int) -> None:
        add = self._events.append
        for event in append.events:
            seq, at, body = event.seq, event.at, event.body
            add((num, seq, at, body.decode(), event_crc(uid_sum, seq, at, body)))

    def _insert_events(self) -> None:
        events = self._events
        whole = len(events) - len(events) % EVENTS_PER_INSERT
        for first in range(0, whole, EVENTS_PER_INSERT):
            self._execute(_INSERT_EVENTS, list(chain.from_iterable(events[first : first + EVENTS_PER_INSERT])))
        if whole < len(events):
            self._connection.executemany(_INSERT_EVENT, events[whole:])

    def _remember_number(self, uid: RunUid, num: int) -> int:
        if len(self._numbers) >= NUMBERS_MAX:
            self._numbers.clear()
        uid_sum = uid_crc(uid)
        self._numbers[uid] = (num, uid_sum)
        return uid_sum


def write_snapshot(connection: apsw.Connection, num: int, uid_sum: int, snapshot: Snapshot | None) -> None:
    """Replace the snapshot of this fold number."""
    if snapshot is not None:
        connection.execute(
            "INSERT OR REPLACE INTO snapshots (run, fold, seq, crc, body) VALUES (?, ?, ?, ?, ?)",
            (num, snapshot.fold, snapshot.seq, snapshot_crc(uid_sum, snapshot), snapshot.body),
        )
