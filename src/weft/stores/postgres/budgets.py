"""The ledger of budgets in Postgres.

Appends with moves are written in a transaction of several statements. It holds an advisory lock on each scope, taken
before any run is locked and in one order, so that hosts wait for each other and never in a circle.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import HostId, Millis, RunUid
from weft.core.ledger import CallKey, Ledger, LedgerRow, Reservation, run_of
from weft.ports.store import Append, Outcome
from weft.stores.ledger_rows import (
    COLUMNS,
    changed_rows,
    ledger_columns,
    ledger_row,
    reservation_text,
    reservations_of,
    touched_scopes,
)
from weft.stores.postgres.commit import COMMIT, commit_values, parse_outcomes, split_calls
from weft.stores.postgres.pool import Pool, fetch
from weft.stores.postgres.session import Session

_LOCK = (
    "SELECT pg_advisory_xact_lock(l.key) FROM (SELECT DISTINCT hashtextextended('weft.budget:' || s, 0) AS key "
    "FROM unnest($1::text[]) AS s ORDER BY 1) AS l"
)
_RESERVED = (
    "SELECT r.uid, b.task, b.attempt, b.delivery, b.body FROM reservations b JOIN runs r ON r.num = b.run "
    "WHERE r.uid = ANY ($1::text[])"
)
_READ = f"SELECT {COLUMNS} FROM budgets WHERE scope = ANY ($1::text[]) ORDER BY scope, unit"
_WRITE = (
    f"INSERT INTO budgets ({COLUMNS}, run) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, (SELECT num FROM runs WHERE uid = $10)) "
    "ON CONFLICT (scope, unit) DO UPDATE SET most = excluded.most, spent = excluded.spent, "
    "at_most = excluded.at_most, reserved = excluded.reserved, warn = excluded.warn, warned = excluded.warned, "
    "ends_at = excluded.ends_at"
)
_FORGET = "WITH gone AS (DELETE FROM budgets WHERE ends_at < $1 AND reserved = 0 RETURNING 1) SELECT count(*) FROM gone"
_RESERVE = (
    "INSERT INTO reservations (run, task, attempt, delivery, body) SELECT num, $2, $3, $4, $5 FROM runs WHERE uid = $1"
)
_FREE = (
    "DELETE FROM reservations b USING runs r "
    "WHERE r.uid = $1 AND b.run = r.num AND b.task = $2 AND b.attempt = $3 AND b.delivery = $4"
)


class PostgresBudgets:
    """The ledger of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, scopes: Sequence[str]) -> Sequence[LedgerRow]:
        return [ledger_row(row) for row in await fetch(self._pool, _READ, list(scopes))]

    async def forget(self, *, ended_before: Millis) -> int:
        return int((await fetch(self._pool, _FORGET, ended_before))[0][0])


async def commit_with_moves(session: Session, batch: Sequence[Append], host: HostId, wal: int | None) -> list[Outcome]:
    """Write a batch in which some appends have moves of the ledger."""
    async with session.transaction():
        reserved = await lock_scopes(session, batch)
        outcomes: dict[RunUid, Outcome] = {}
        for numbered in split_calls(batch):
            appends = [append for _, append in numbered]
            written = parse_outcomes(await session.fetchval(COMMIT, *commit_values(appends, host, wal)))
            outcomes |= {append.uid: outcome for append, outcome in zip(appends, written, strict=True)}
        accepted = [append for append in batch if outcomes[append.uid] is Outcome.ACCEPTED]
        await apply_moves(session, accepted, reserved)
    return [outcomes[append.uid] for append in batch]


async def lock_scopes(session: Session, batch: Sequence[Append]) -> dict[CallKey, Reservation]:
    """Lock the scopes that the moves of a batch need. Returns the reservations of its runs."""
    moving = [append for append in batch if append.ledger]
    reserved: dict[CallKey, Reservation] = {}
    # Only the owner of a run changes its reservations, so they may be read before anything is locked.
    for uid, *values in await session.fetch(_RESERVED, [append.uid for append in moving]):
        reserved |= reservations_of(uid, [values])
    scopes = {scope for append in moving for scope in touched_scopes(append, reserved.values())}
    await session.fetch(_LOCK, sorted(scopes))
    return reserved


async def apply_moves(session: Session, accepted: Sequence[Append], reserved: dict[CallKey, Reservation]) -> None:
    """Apply the moves of appends that were accepted, in their transaction."""
    moving = [append for append in accepted if append.ledger]
    if not moving:
        return
    scopes = {scope for append in moving for scope in touched_scopes(append, reserved.values())}
    ledger = Ledger([ledger_row(row) for row in await session.fetch(_READ, sorted(scopes))], reserved)
    for append in moving:
        append.answers = ledger.apply(append.uid, append.ledger)
    rows = [(*ledger_columns(row), run_of(row.scope)) for _, row in changed_rows(ledger)]
    if rows:
        await session.executemany(_WRITE, rows)
    if ledger.gone:
        await session.executemany(_FREE, ledger.gone)
    if ledger.made:
        made = [(*call, reservation_text(reservation)) for call, reservation in ledger.made.items()]
        await session.executemany(_RESERVE, made)
