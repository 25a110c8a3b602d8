"""The ledger of budgets in SQLite."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec

from weft.core.ids import Millis
from weft.core.ledger import Ledger, LedgerRow, run_of
from weft.ports.store import Append
from weft.stores.ledger_rows import (
    COLUMNS,
    changed_rows,
    ledger_columns,
    ledger_row,
    reservation_text,
    reservations_of,
    touched_scopes,
)
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_RESERVED = "SELECT task, attempt, delivery, body FROM reservations WHERE run = ?"
_READ = f"SELECT {COLUMNS} FROM budgets WHERE scope IN (SELECT value FROM json_each(?)) ORDER BY scope, unit"
_WRITE = (
    f"INSERT INTO budgets ({COLUMNS}, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT num FROM runs WHERE uid = ?)) "
    "ON CONFLICT (scope, unit) DO UPDATE SET most = excluded.most, spent = excluded.spent, "
    "at_most = excluded.at_most, reserved = excluded.reserved, warn = excluded.warn, warned = excluded.warned, "
    "ends_at = excluded.ends_at"
)
_FORGET = "DELETE FROM budgets WHERE ends_at < ? AND reserved = 0"
_RESERVE = "INSERT INTO reservations (run, task, attempt, delivery, body) VALUES (?, ?, ?, ?, ?)"
_FREE = "DELETE FROM reservations WHERE run = ? AND task = ? AND attempt = ? AND delivery = ?"


class SqliteBudgets:
    """The ledger of a SQLite store."""

    def __init__(self, reader: SqliteReader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, scopes: Sequence[str]) -> Sequence[LedgerRow]:
        return self._reader.read(lambda connection: _read_ledger(connection, scopes))

    async def forget(self, *, ended_before: Millis) -> int:
        def work(connection: apsw.Connection) -> int:
            connection.execute(_FORGET, (ended_before,))
            return connection.changes()

        return await self._writer.small(work)


def apply_moves(connection: apsw.Connection, append: Append, num: int) -> None:
    """Apply the moves of an append that was accepted, in its transaction. ``num`` is the number of its run."""
    reserved = reservations_of(append.uid, connection.execute(_RESERVED, (num,)).fetchall())
    ledger = Ledger(_read_ledger(connection, touched_scopes(append, reserved.values())), reserved)
    append.answers = ledger.apply(append.uid, append.ledger)
    rows = [(*ledger_columns(row), run_of(row.scope)) for _, row in changed_rows(ledger)]
    if rows:
        connection.executemany(_WRITE, rows)
    for key in ledger.gone:
        connection.execute(_FREE, (num, *key[1:]))
    for key, made in ledger.made.items():
        connection.execute(_RESERVE, (num, *key[1:], reservation_text(made)))


def _read_ledger(connection: apsw.Connection, scopes: Sequence[str]) -> list[LedgerRow]:
    return [ledger_row(row) for row in connection.execute(_READ, (msgspec.json.encode(list(scopes)).decode(),))]
