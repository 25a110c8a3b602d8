"""Starts by rules in Postgres.

Each is one transaction, which holds an advisory lock on its slot: starts with the same slot wait for each other, and so
does a run with this slot that is opened again.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from weft.core.ids import HostId, RunId, RunUid
from weft.ports.new_run import START_MAIL
from weft.ports.starts import RuledStart, StartAnswer, StartOutcome
from weft.ports.store import Append, Mail, Outcome, RunRow
from weft.stores.checksums import mail_crc
from weft.stores.judge import judge_reopened, takes_slot
from weft.stores.judge_starts import (
    OPEN_WITH_SLOT,
    StartFacts,
    StartVerdict,
    UsedId,
    is_singleton,
    judge_start,
    start_answer,
)
from weft.stores.postgres.budgets import apply_moves, lock_scopes
from weft.stores.postgres.commit import COMMIT, commit_values, parse_outcomes, split_calls
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.pool import Pool, fetch, fetch_value
from weft.stores.postgres.rows import RUN_COLUMNS, mail_values, new_fields, run_row
from weft.stores.postgres.session import Session
from weft.stores.rows import NOT_DOOMED, added_input, cancel_mail, json_text

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('weft.slot:' || $1, 0))"
_RULE = "SELECT body FROM start_rules WHERE workflow = $1"
_SET_RULE = "INSERT INTO start_rules VALUES ($1, $2) ON CONFLICT (workflow) DO UPDATE SET body = $2"
_WITH_SLOT = f"SELECT {RUN_COLUMNS} FROM runs WHERE {OPEN_WITH_SLOT.format(slot='$1')} ORDER BY num"
# Everybody locks runs in this order.
_LOCK_RUNS = f"SELECT 1 FROM runs WHERE {OPEN_WITH_SLOT.format(slot='$1')} ORDER BY uid FOR NO KEY UPDATE"
_TAKEN = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = $1 OR uid = $2)"
_USED = f"SELECT r.uid, r.id, s.digest FROM start_ids s JOIN runs r ON r.num = s.run WHERE s.id = $1 AND r.{NOT_DOOMED}"
_KEEP_ID = (
    "INSERT INTO start_ids (id, run, digest) SELECT $1, num, $2 FROM runs WHERE uid = $3 "
    "ON CONFLICT (id) DO UPDATE SET run = excluded.run, digest = excluded.digest"
)
_BEGIN_NOW = "UPDATE runs SET wake_at = NULL WHERE uid = $1 AND seq = 0 AND owner IS NULL"
_START_AT = "SELECT i.at FROM inbox i JOIN runs r ON r.num = i.run WHERE r.uid = $1 AND i.id = $2"
_START_BODY = "UPDATE inbox i SET body = $3, crc = $4 FROM runs r WHERE r.uid = $1 AND i.run = r.num AND i.id = $2"
_DELIVER = "SELECT deliver($1, $2, $3, $4, $5, $6, $7)"
_SLOTS = "SELECT uid, slot FROM runs WHERE uid = ANY ($1::text[]) AND slot IS NOT NULL ORDER BY slot"


class PostgresStarts:
    """The rules of a Postgres store, and starts by them."""

    def __init__(self, pool: Pool, hints: Hints) -> None:
        self._pool = pool
        self._hints = hints

    async def rules(self) -> Mapping[str, bytes]:
        return {row[0]: row[1].encode() for row in await fetch(self._pool, "SELECT workflow, body FROM start_rules")}

    async def rule(self, workflow: str) -> bytes | None:
        body = await fetch_value(self._pool, _RULE, workflow)
        return None if body is None else str(body).encode()

    async def set_rules(self, changes: Mapping[str, bytes | None]) -> None:
        async def work(session: Session) -> None:
            async with session.transaction():
                for workflow, body in sorted(changes.items()):
                    if body is None:
                        await session.execute("DELETE FROM start_rules WHERE workflow = $1", workflow)
                    else:
                        await session.execute(_SET_RULE, workflow, body.decode())

        await self._pool.run(work)

    async def start(self, start: RuledStart) -> StartAnswer:
        answer = await self._pool.run(lambda session: _start_in_transaction(session, start))
        self._hints.send()
        return answer

    async def with_slot(self, slot: str) -> Mapping[RunUid, RunId]:
        return {run.uid: run.id for run in await self._pool.run(lambda session: _with_slot(session, slot))}

    async def take_slot(self, uid: RunUid, slot: str) -> RunId | None:
        async def work(session: Session) -> RunId | None:
            async with session.transaction():
                await session.execute(_LOCK, slot)
                others = [run for run in await _with_slot(session, slot) if run.uid != uid]
                if not others:
                    await session.execute("UPDATE runs SET slot = $2 WHERE uid = $1", uid, slot)
                return others[-1].id if others else None

        return await self._pool.run(work)


async def commit_reopening(session: Session, batch: Sequence[Append], host: HostId, wal: int | None) -> list[Outcome]:
    """Commit appends of which some open runs again. Those whose slot another open run has are refused."""
    async with session.transaction():
        reserved = await lock_scopes(session, batch) if any(append.ledger for append in batch) else None
        refused: set[RunUid] = set()
        reopened: set[str] = set()
        for uid, slot in await session.fetch(_SLOTS, [append.uid for append in batch if takes_slot(append)]):
            if is_singleton(slot):
                await session.execute(_LOCK, slot)
                others = [run.uid for run in await _with_slot(session, slot) if run.uid != uid]
                refused |= {uid} if others or slot in reopened else set()
                reopened.add(slot)
        outcomes = judge_reopened(refused)
        for numbered in split_calls([append for append in batch if append.uid not in refused]):
            appends = [append for _, append in numbered]
            written = parse_outcomes(await session.fetchval(COMMIT, *commit_values(appends, host, wal)))
            outcomes |= {append.uid: outcome for append, outcome in zip(appends, written, strict=True)}
        if reserved is not None:
            accepted = [append for append in batch if outcomes[append.uid] is Outcome.ACCEPTED]
            await apply_moves(session, accepted, reserved)
        return [outcomes[append.uid] for append in batch]


async def _start_in_transaction(session: Session, start: RuledStart) -> StartAnswer:
    new = start.new
    async with session.transaction():
        await session.execute(_LOCK, new.slot)
        if start.rule.kind != "singleton" or start.rule.then == "replace":
            # A host claims a run that waits for inputs before this start is judged, or after it was carried out.
            await session.execute(_LOCK_RUNS, new.slot)
        body = await session.fetchval(_RULE, new.workflow)
        used = await session.fetchrow(_USED, new.id) if start.chosen else None
        facts = StartFacts(
            open_runs=await _with_slot(session, new.slot),
            is_taken=bool(await session.fetchval(_TAKEN, new.id, new.uid)),
            stored=None if body is None else body.encode(),
            used=None if used is None else UsedId(*used),
        )
        verdict = judge_start(start, facts)
        if verdict.outcome is StartOutcome.CREATED:
            made = await session.fetch("SELECT made FROM make_runs($1)", json_text([new_fields(new)]))
            if not made:  # a start with the same id and another slot was quicker
                return StartAnswer(outcome=StartOutcome.ID_TAKEN)
        await _carry_out(session, start, verdict)
    return start_answer(verdict)


async def _carry_out(session: Session, start: RuledStart, verdict: StartVerdict) -> None:
    if verdict.closes is not None:
        await session.execute(_BEGIN_NOW, verdict.closes.uid)
    for other in verdict.cancels:
        await session.fetchval(_DELIVER, *mail_values(cancel_mail(start, other)))
        await session.execute(_BEGIN_NOW, other.uid)
    if verdict.keeps_id:
        await session.execute(_KEEP_ID, start.new.id, start.digest, verdict.uid)
    if verdict.wake_at is UNSET:
        return
    await session.execute("UPDATE runs SET wake_at = $2 WHERE uid = $1", verdict.uid, verdict.wake_at)
    if verdict.replaces_input:
        await _replace_start(session, verdict.uid, start.new.start or b"")
    if verdict.adds_input:
        await session.fetchval(_DELIVER, *mail_values(added_input(start, verdict.uid)))
        await session.execute("UPDATE runs SET inputs = inputs + $2 WHERE uid = $1", verdict.uid, start.new.inputs)


async def _replace_start(session: Session, uid: RunUid, body: bytes) -> None:
    sent_at = await session.fetchval(_START_AT, uid, START_MAIL)
    crc = mail_crc(Mail(id=START_MAIL, to=uid, body=body, at=sent_at))
    await session.execute(_START_BODY, uid, START_MAIL, body.decode(), crc)


async def _with_slot(session: Session, slot: str | None) -> list[RunRow]:
    return [run_row(row) for row in await session.fetch(_WITH_SLOT, slot)]
