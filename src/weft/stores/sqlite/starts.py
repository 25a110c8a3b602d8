"""Starts by rules in SQLite. Each is judged and carried out under the writer's lock."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping

import apsw
from msgspec import UNSET

from weft.core.ids import RunId, RunUid
from weft.ports.new_run import START_MAIL
from weft.ports.starts import RuledStart, StartAnswer, StartOutcome
from weft.ports.store import Mail, RunRow
from weft.stores.checksums import mail_crc
from weft.stores.judge_starts import (
    OPEN_WITH_SLOT,
    StartFacts,
    StartVerdict,
    UsedId,
    is_singleton,
    judge_start,
    start_answer,
)
from weft.stores.rows import NOT_DOOMED, added_input, cancel_mail
from weft.stores.sqlite.mail import deliver_mail
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.rows import RUN_COLUMNS, insert_run, run_row
from weft.stores.sqlite.writer import Writer

_RULE = "SELECT body FROM start_rules WHERE workflow = ?"
_WITH_SLOT = f"SELECT {RUN_COLUMNS} FROM runs WHERE {OPEN_WITH_SLOT.format(slot='?')} ORDER BY num"
_TAKEN = "SELECT 1 FROM runs WHERE id = ? OR uid = ?"
_USED = (
    "SELECT uid, runs.id, digest FROM start_ids JOIN runs ON runs.num = start_ids.run "
    f"WHERE start_ids.id = ? AND {NOT_DOOMED}"
)
_KEEP_ID = "INSERT OR REPLACE INTO start_ids (id, run, digest) SELECT ?, num, ? FROM runs WHERE uid = ?"
_BEGIN_NOW = "UPDATE runs SET wake_at = NULL WHERE uid = ? AND seq = 0 AND owner IS NULL"
_START_BODY = "UPDATE inbox SET body = ?, crc = ? WHERE run = (SELECT num FROM runs WHERE uid = ?) AND id = ?"
_START_AT = "SELECT at FROM inbox WHERE run = (SELECT num FROM runs WHERE uid = ?) AND id = ?"


class SqliteStarts:
    """The rules of a SQLite store, and starts by them."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def rules(self) -> Mapping[str, bytes]:
        rows = self._reader.read(
            lambda connection: connection.execute("SELECT workflow, body FROM start_rules").fetchall()
        )
        return {str(workflow): str(body).encode() for workflow, body in rows}

    async def rule(self, workflow: str) -> bytes | None:
        return self._reader.read(lambda connection: _read_rule(connection, workflow))

    async def set_rules(self, changes: Mapping[str, bytes | None]) -> None:
        def work(connection: apsw.Connection) -> None:
            for workflow, body in changes.items():
                connection.execute("DELETE FROM start_rules WHERE workflow = ?", (workflow,))
                if body is not None:
                    connection.execute("INSERT INTO start_rules VALUES (?, ?)", (workflow, body.decode()))

        await self._writer.small(work)

    async def start(self, start: RuledStart) -> StartAnswer:
        return await self._writer.small(lambda connection: _start_or_join(connection, start))

    async def with_slot(self, slot: str) -> Mapping[RunUid, RunId]:
        return {run.uid: run.id for run in self._reader.read(lambda connection: _with_slot(connection, slot))}

    async def take_slot(self, uid: RunUid, slot: str) -> RunId | None:
        def work(connection: apsw.Connection) -> RunId | None:
            others = [run for run in _with_slot(connection, slot) if run.uid != uid]
            if others:
                return others[-1].id
            connection.execute("UPDATE runs SET slot = ? WHERE uid = ?", (slot, uid))
            return None

        return await self._writer.small(work)


def is_slot_taken(connection: apsw.Connection, uid: RunUid) -> bool:
    """Return whether another open run has the slot of a singleton that is over."""
    row = connection.execute("SELECT slot FROM runs WHERE uid = ?", (uid,)).fetchone()
    slot = None if row is None else row[0]
    return is_singleton(slot) and any(run.uid != uid for run in _with_slot(connection, slot))


def _start_or_join(connection: apsw.Connection, start: RuledStart) -> StartAnswer:
    new = start.new
    facts = StartFacts(
        open_runs=_with_slot(connection, new.slot),
        is_taken=connection.execute(_TAKEN, (new.id, new.uid)).fetchone() is not None,
        stored=_read_rule(connection, new.workflow),
        used=_read_used(connection, new.id) if start.chosen else None,
    )
    verdict = judge_start(start, facts)
    _carry_out(connection, start, verdict)
    return start_answer(verdict)


def _carry_out(connection: apsw.Connection, start: RuledStart, verdict: StartVerdict) -> None:
    new = start.new
    if verdict.outcome is StartOutcome.CREATED:
        insert_run(connection, new, new.id)
    if verdict.closes is not None:
        connection.execute(_BEGIN_NOW, (verdict.closes.uid,))
    for other in verdict.cancels:
        deliver_mail(connection, cancel_mail(start, other))
        connection.execute(_BEGIN_NOW, (other.uid,))
    if verdict.keeps_id:
        connection.execute(_KEEP_ID, (new.id, start.digest, verdict.uid))
    if verdict.wake_at is UNSET:
        return
    connection.execute("UPDATE runs SET wake_at = ? WHERE uid = ?", (verdict.wake_at, verdict.uid))
    if verdict.replaces_input:
        _replace_start(connection, verdict.uid, new.start or b"")
    if verdict.adds_input:
        deliver_mail(connection, added_input(start, verdict.uid))
        connection.execute("UPDATE runs SET inputs = inputs + ? WHERE uid = ?", (new.inputs, verdict.uid))


def _replace_start(connection: apsw.Connection, uid: RunUid, body: bytes) -> None:
    (sent_at,) = connection.execute(_START_AT, (uid, START_MAIL)).fetchone()  # type: ignore[misc]  # it has not begun
    crc = mail_crc(Mail(id=START_MAIL, to=uid, body=body, at=sent_at))
    connection.execute(_START_BODY, (body.decode(), crc, uid, START_MAIL))


def _with_slot(connection: apsw.Connection, slot: str | None) -> list[RunRow]:
    return [run_row(row) for row in connection.execute(_WITH_SLOT, (slot,)).fetchall()]


def _read_rule(connection: apsw.Connection, workflow: str) -> bytes | None:
    row = connection.execute(_RULE, (workflow,)).fetchone()
    return None if row is None else str(row[0]).encode()


def _read_used(connection: apsw.Connection, id: RunId) -> UsedId | None:
    row = connection.execute(_USED, (id,)).fetchone()
    return None if row is None else UsedId(*row)
