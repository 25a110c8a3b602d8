"""Rows of the ledger of budgets, as SQL stores have them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from weft.core.ledger import CallKey, Ledger, LedgerRow, Reservation, RowKey, scopes_of
from weft.ports.store import Append

COLUMNS = "scope, unit, most, spent, at_most, reserved, warn, warned, ends_at"
"""The columns of a row, in the order of ``row_of``."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reservation).decode


def ledger_row(values: Sequence[Any]) -> LedgerRow:
    """Make a row from its columns."""
    scope, unit, most, spent, at_most, reserved, warn, warned, ends_at = values
    return LedgerRow(
        scope=scope,
        unit=unit,
        limit=most,
        spent=spent,
        at_most=at_most,
        reserved=reserved,
        warn=warn,
        warned=bool(warned),
        ends_at=ends_at or 0,
    )


def ledger_columns(row: LedgerRow) -> tuple[Any, ...]:
    """Return the columns of a row."""
    amounts = (row.limit, row.spent, row.at_most, row.reserved)
    return row.scope, row.unit, *amounts, row.warn, row.warned, row.ends_at or None


def reservations_of(uid: str, rows: Iterable[Sequence[Any]]) -> dict[CallKey, Reservation]:
    """Make the reservations of a run from the columns task, attempt, delivery and body."""
    return {(uid, task, attempt, delivery): _decode(body) for task, attempt, delivery, body in rows}


def reservation_text(reservation: Reservation) -> str:
    """Return the body of a reservation."""
    return _encode(reservation).decode()


def touched_scopes(append: Append, reservations: Iterable[Reservation]) -> list[str]:
    """Return the scopes whose rows the moves of an append need, in order."""
    found = scopes_of(append.uid, append.ledger)
    for reservation in reservations:
        found.update(reservation.scopes)
    return sorted(found)


def changed_rows(ledger: Ledger) -> list[tuple[RowKey, LedgerRow]]:
    """Return the rows to write, in order."""
    return sorted(ledger.changed.items())
