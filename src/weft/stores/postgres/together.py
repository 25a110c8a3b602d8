"""Write appends to several runs in one transaction, all or none.

The rows are locked first. Then the runs get an owner that no host has, so that ``commit_batch`` writes the appends; it
judges each of them by what was judged here already. Long logs are written in parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.ports.retention import AuditEntry
from weft.ports.store import EVENTS_PER_APPEND_MAX, OVER_STATUSES, Append, Outcome
from weft.stores.judge import judge_recorded, judge_together
from weft.stores.postgres.budgets import apply_moves, lock_scopes
from weft.stores.postgres.commit import COMMIT, commit_values, parse_outcomes, split_calls
from weft.stores.postgres.holds import AUDIT, entry_values
from weft.stores.postgres.session import Session
from weft.stores.postgres.whole_run import write_events

# Everybody locks in this order, also the runs to which mail goes.
_LOCK = (
    "SELECT uid, status, seq, epoch, owner, mail, wal IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM wals l WHERE l.id = runs.wal AND l.drained_at IS NOT NULL) "
    "FROM runs WHERE uid = ANY ($1::text[]) ORDER BY uid FOR NO KEY UPDATE"
)
_TAKE = "UPDATE runs SET owner = $2, wal = NULL WHERE uid = ANY ($1::text[])"
_OPEN = "UPDATE runs SET owner = NULL, wake_at = $2, ended_at = NULL, idle_until = NULL WHERE uid = ANY ($1::text[])"
_RECORDED = "SELECT EXISTS (SELECT 1 FROM audit WHERE run = $1 AND details::jsonb ->> 'digest' = $2)"
_CLAIMANT = HostId("transfer")


class _Head(msgspec.Struct, frozen=True):
    uid: RunUid
    status: str
    seq: Seq
    epoch: Epoch
    owner: HostId | None
    mail: int
    hot: bool


async def write_all(session: Session, batch: Sequence[Append], entry: AuditEntry | None) -> list[Outcome]:
    """Write all appends if all of them are allowed, whoever owns the runs."""
    uids = [append.uid for append in batch]
    async with session.transaction():
        reserved = await lock_scopes(session, batch) if any(append.ledger for append in batch) else {}
        rows = await session.fetch(_LOCK, [*uids, *(mail.to for append in batch for mail in append.mail)])
        heads = {row[0]: _Head(*row) for row in rows}
        outcomes = [_judge_append(heads.get(append.uid), append) for append in batch]
        if not all(outcome is Outcome.ACCEPTED for outcome in outcomes):
            return outcomes
        if entry is not None:
            # Read after the rows are locked, so that it sees what the last one who had them wrote.
            if await session.fetchval(_RECORDED, entry.run, entry.details["digest"]):
                return judge_recorded(batch)
            await session.execute(AUDIT, *entry_values(entry))
        await session.execute(_TAKE, uids, _CLAIMANT)
        firsts = [msgspec.structs.replace(one, events=one.events[:EVENTS_PER_APPEND_MAX], reopen=None) for one in batch]
        for numbered in split_calls(firsts):
            values = commit_values([append for _, append in numbered], _CLAIMANT)
            written = parse_outcomes(await session.fetchval(COMMIT, *values))
            assert all(outcome is Outcome.ACCEPTED for outcome in written), (
                "the statement refuses what the judge allows"
            )
        await apply_moves(session, batch, reserved)
        for append in batch:
            await write_events(session, append.uid, append.events[EVENTS_PER_APPEND_MAX:])
        opened = [one for one in batch if one.reopen is not None and one.status not in OVER_STATUSES]
        if opened:
            await session.execute(_OPEN, [append.uid for append in opened], opened[0].reopen)
    return outcomes


def _judge_append(head: _Head | None, append: Append) -> Outcome:
    return judge_together(head, append, hot=head is not None and head.hot)
