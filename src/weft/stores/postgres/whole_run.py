"""Create a run with its whole log in one transaction. Long logs are written in parts: no statement is large."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core.ids import RunUid
from weft.ports.store import EVENTS_PER_APPEND_MAX, Append, Outcome, StoredEvent
from weft.stores.checksums import event_crc, uid_crc
from weft.stores.postgres.budgets import apply_moves, lock_scopes
from weft.stores.postgres.commit import COMMIT, commit_values, parse_outcomes
from weft.stores.postgres.session import Session
from weft.stores.rows import NOBODY

_EVENTS = (
    "INSERT INTO events (run, seq, at, crc, body) "
    "SELECT r.num, e.* FROM runs r, unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS e WHERE r.uid = $1"
)
_ADVANCE = (
    "UPDATE runs SET seq = $2, updated_at = $3::bigint, "
    "ended_at = CASE WHEN ended_at IS NULL THEN NULL ELSE $3::bigint END WHERE uid = $1"
)


async def write_whole(session: Session, run: Append) -> Outcome:
    """Create the run with its first events and everything else, then write the other events."""
    first, rest = run.events[:EVENTS_PER_APPEND_MAX], run.events[EVENTS_PER_APPEND_MAX:]
    async with session.transaction():
        reserved = await lock_scopes(session, [run]) if run.ledger else {}
        values = commit_values([msgspec.structs.replace(run, events=first)], NOBODY)
        (outcome,) = parse_outcomes(await session.fetchval(COMMIT, *values))
        if outcome is Outcome.ACCEPTED:
            await write_events(session, run.uid, rest)
            await apply_moves(session, [run], reserved)
    return outcome


async def write_events(session: Session, uid: RunUid, events: Sequence[StoredEvent]) -> None:
    """Write more events of a run in the transaction that wrote those before them."""
    uid_sum = uid_crc(uid)
    for start in range(0, len(events), EVENTS_PER_APPEND_MAX):
        part = events[start : start + EVENTS_PER_APPEND_MAX]
        await session.execute(
            _EVENTS,
            uid,
            [event.seq for event in part],
            [event.at for event in part],
            [event_crc(uid_sum, event.seq, event.at, event.body) for event in part],
            [event.body.decode() for event in part],
        )
    if events:
        await session.execute(_ADVANCE, uid, events[-1].seq, events[-1].at)
