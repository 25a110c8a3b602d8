"""The logs of runs in Postgres. Every write is one statement, and so one transaction."""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.ports.blobs import LINKS_MAX
from weft.ports.new_run import NewRun
from weft.ports.retention import AuditEntry
from weft.ports.store import (
    OPEN_STATUSES,
    OVER_STATUSES,
    Append,
    KeyRow,
    Loaded,
    Mail,
    Outcome,
    Release,
    RunRow,
    Sent,
    Snapshot,
    StoredEvent,
)
from weft.stores.checksums import check_log_end, checked_events, snapshot_crc, uid_crc
from weft.stores.judge import check_numbering, judge_create, takes_slot
from weft.stores.postgres.budgets import commit_with_moves
from weft.stores.postgres.commit import COMMIT, commit_values, parse_outcomes, split_calls
from weft.stores.postgres.connection import Connection
from weft.stores.postgres.hints import Hints
from weft.stores.postgres.plain_append import plain_statement, try_plain_append
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.rows import (
    OF_RUNS,
    RUN_COLUMNS,
    mail_values,
    new_fields,
    parse_mail,
    run_row,
    snapshot_columns,
)
from weft.stores.postgres.session import Record
from weft.stores.postgres.starts import commit_reopening
from weft.stores.postgres.together import write_all
from weft.stores.postgres.whole_run import write_whole
from weft.stores.rows import json_text

EVENTS_PER_READ = 5_000
"""More events than this are read with several queries. The result is consistent, because events never change."""

_OPEN = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
# A WAL that the statement does not see yet is not drained. So it must look for drained ones, never for open ones.
_MAY_CLAIM = (
    "(r.wal IS NULL OR r.owner = $3 OR EXISTS (SELECT 1 FROM wals l WHERE l.id = r.wal AND l.drained_at IS NOT NULL))"
)
_USED_WAL = (
    "CASE WHEN $4::bigint IS NOT NULL THEN (SELECT l.id FROM wals l WHERE l.id = $4 AND l.drained_at IS NULL) END"
)
_CLAIM_ONE = (
    f"UPDATE runs AS r SET owner = $3, epoch = epoch + 1, wake_at = NULL, wal = {_USED_WAL} "
    f"WHERE uid = $1 AND epoch = $2 AND status IN ({_OPEN}) AND {_MAY_CLAIM} RETURNING {RUN_COLUMNS}"
)
# SKIP LOCKED skips the rows that others are claiming or writing, so that hosts that start together share the runs.
_CLAIM_MANY = (
    "WITH free AS (SELECT r.num FROM unnest($1::text[], $2::bigint[]) AS w (uid, epoch) "
    f"JOIN runs r ON r.uid = w.uid AND r.epoch = w.epoch WHERE r.status IN ({_OPEN}) AND {_MAY_CLAIM} "
    "ORDER BY r.uid FOR NO KEY UPDATE OF r SKIP LOCKED) "
    f"UPDATE runs r SET owner = $3, epoch = r.epoch + 1, wake_at = NULL, wal = {_USED_WAL} "
    "FROM free WHERE r.num = free.num "
    f"RETURNING {OF_RUNS}"
)
_LOAD = (
    f"SELECT {OF_RUNS}, r.num, r.cut, s.seq AS s_seq, s.crc AS s_crc, s.body AS s_body, e.*, i.* FROM runs r "
    "LEFT JOIN snapshots s ON s.run = r.num AND s.fold = $2 "
    "CROSS JOIN LATERAL (SELECT array_agg(t.seq) AS e_seq, array_agg(t.at) AS e_at, array_agg(t.crc) AS e_crc, "
    "array_agg(t.body) AS e_body FROM (SELECT seq, at, crc, body FROM events "
    "WHERE run = r.num AND seq > greatest($3, r.cut) ORDER BY seq LIMIT $4) AS t) AS e "
    "CROSS JOIN LATERAL (SELECT array_agg(t.id) AS i_id, array_agg(t.body) AS i_body, array_agg(t.at) AS i_at, "
    "array_agg(t.key) AS i_key, array_agg(t.digest) AS i_digest, array_agg(t.crc) AS i_crc FROM (SELECT * FROM inbox "
    "WHERE run = r.num ORDER BY n) AS t) AS i WHERE r.uid = $1"
)
_LOAD_AFTER_SNAPSHOT = _LOAD.replace("greatest($3, r.cut)", "greatest(coalesce(s.seq, $3), r.cut)")
_EVENTS = (
    "SELECT e.seq, e.at, e.body, e.crc, r.cut FROM runs r JOIN events e ON e.run = r.num "
    "WHERE r.uid = $1 AND e.seq > greatest($2, r.cut) ORDER BY e.seq LIMIT $3"
)
_INBOX = (
    "SELECT i.id, i.body, i.at, i.key, i.digest, i.crc FROM runs r JOIN inbox i ON i.run = r.num "
    "WHERE r.uid = $1 ORDER BY i.n"
)
REFERS_TO = (
    'WITH RECURSIVE above (hash) AS (SELECT $1::text COLLATE "C" UNION '
    "SELECT l.parent FROM above a JOIN blob_links l ON l.child = a.hash) "
    f"SELECT EXISTS (SELECT 1 FROM (SELECT hash FROM above LIMIT {LINKS_MAX}) AS a "
    "JOIN refs ON refs.hash = a.hash WHERE refs.run = (SELECT num FROM runs WHERE uid = $2))"
)
_RELEASE = f"SELECT release_runs({', '.join(f'${n}' for n in range(1, 11))})"
_SEND = "SELECT send_mail($1, $2, $3, $4, $5, $6, $7)"
_MARK_FAULT = (
    "UPDATE runs SET fault = $2, wal = CASE WHEN $2::text IS NULL THEN wal END, "
    "status = CASE WHEN ended_at IS NULL THEN coalesce($3::text, status) ELSE status END WHERE uid = $1"
)
_START_NOW = (
    "UPDATE runs SET wake_at = NULL "
    "WHERE uid = ANY ($1::text[]) AND seq = 0 AND owner IS NULL AND wake_at IS NOT NULL AND ended_at IS NULL"
)


class PostgresLog:
    """The run log of a Postgres store."""

    commits_in_place = False
    hot = None

    def __init__(self, writer: Connection, pool: Pool, hints: Hints, wals: Mapping[HostId, int]) -> None:
        """``wals`` has the WALs that the hosts of this process use."""
        self._writer = writer
        self._pool = pool
        self._hints = hints
        self._wals = wals

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        if len(batch) == 1:
            plain = plain_statement(batch[0], host)
            if plain is not None and await self._writer.run(lambda session: try_plain_append(session, *plain)):
                return [Outcome.ACCEPTED]
        check_numbering(batch)
        wal = self._wals.get(host)
        if any(takes_slot(append) for append in batch):
            reopened = await self._writer.run(lambda session: commit_reopening(session, batch, host, wal))
            self._hints.send()
            return reopened
        if any(append.ledger for append in batch):
            moved = await self._writer.run(lambda session: commit_with_moves(session, batch, host, wal))
            if any(_concerns_others(append) for append in batch):
                self._hints.send()
            return moved
        outcomes: dict[int, Outcome] = {}
        for numbered in split_calls(batch):
            values = commit_values([append for _, append in numbered], host, wal)
            answer = await fetch_value(self._writer, COMMIT, *values)
            for (place, _), outcome in zip(numbered, parse_outcomes(answer), strict=True):
                outcomes[place] = outcome
        if any(_concerns_others(append) for append in batch):
            self._hints.send()
        return [outcomes[place] for place in range(len(batch))]

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        found = await fetch_row(self._pool, _LOAD_AFTER_SNAPSHOT, uid, fold, 0, EVENTS_PER_READ)
        if found is None:
            return None
        snapshot = _snapshot_of_row(uid, fold, found)
        if snapshot is None and found["s_seq"] is not None:
            # A damaged snapshot is ignored: it is only a cache, and the log has everything.
            found = await fetch_row(self._pool, _LOAD, uid, fold, 0, EVENTS_PER_READ)
            if found is None:
                return None
        row, cut = run_row(found), found["cut"]
        if snapshot is not None and snapshot.seq < cut:
            snapshot = None
        after = Seq(cut) if snapshot is None else snapshot.seq
        events = checked_events(uid, after, _rows_of_columns(found, "e_seq", "e_at", "e_body", "e_crc"))
        while len(events) >= EVENTS_PER_READ and after + len(events) < row.seq:
            left = row.seq - after - len(events)
            more = await self.events(uid, after=Seq(after + len(events)), limit=min(left, EVENTS_PER_READ))
            if not more:
                break
            events.extend(more)
        check_log_end(uid, after + len(events), row.seq)
        inbox = parse_mail(uid, _rows_of_columns(found, "i_id", "i_body", "i_at", "i_key", "i_digest", "i_crc"))
        return Loaded(row=row, snapshot=snapshot, events=events, inbox=inbox)

    async def events(self, uid: RunUid, *, after: Seq, limit: int) -> Sequence[StoredEvent]:
        rows = await fetch(self._pool, _EVENTS, uid, after, limit)
        first = Seq(max(after, rows[0]["cut"])) if rows else after
        return checked_events(uid, first, ((seq, at, body.encode(), crc) for seq, at, body, crc, _ in rows))

    async def claim(
        self, uids: Sequence[RunUid], host: HostId, *, expected: Mapping[RunUid, Epoch]
    ) -> Sequence[RunRow]:
        wanted = [uid for uid in uids if uid in expected]
        wal = self._wals.get(host)
        if len(wanted) == 1:
            # Waits for a commit in flight, which is then either in the log or refused because of the new epoch.
            rows = await fetch(self._pool, _CLAIM_ONE, wanted[0], expected[wanted[0]], host, wal)
        elif wanted:
            rows = await fetch(self._pool, _CLAIM_MANY, wanted, [expected[uid] for uid in wanted], host, wal)
        else:
            rows = []
        claimed = {row["uid"]: run_row(row) for row in rows}
        return [claimed[uid] for uid in wanted if uid in claimed]

    async def release(self, releases: Sequence[Release]) -> Sequence[Outcome]:
        if not releases:
            return []
        values = [
            [release.uid for release in releases],
            [release.epoch for release in releases],
            [release.seq for release in releases],
            [release.mail_taken for release in releases],
            [release.wake_at for release in releases],
        ]
        snapshots = snapshot_columns([(release.uid, release.snapshot) for release in releases])
        return parse_outcomes(await fetch_value(self._pool, _RELEASE, *values, *snapshots))

    async def send(self, mail: Sequence[Mail]) -> Sequence[Sent]:
        if not mail:
            return []
        if len(mail) == 1:
            values = mail_values(mail[0])
            answers = [await fetch_value(self._pool, "SELECT deliver($1, $2, $3, $4, $5, $6, $7)", *values)]
        else:
            columns = zip(*(mail_values(piece) for piece in mail), strict=True)
            answers = await fetch_value(self._pool, _SEND, *map(list, columns))
        sent = [Sent(answer) for answer in answers]
        urgent = [piece.to for piece in mail if piece.urgent]
        if urgent:
            # Done after the mail. If this fails, the sender sends again, and until then the run waits as before.
            await fetch(self._pool, _START_NOW, urgent)
        if Sent.ACCEPTED in sent:
            self._hints.send()
        return sent

    async def create(self, runs: Sequence[NewRun]) -> Sequence[Outcome]:
        if not runs:
            return []
        rows = await fetch(self._pool, "SELECT made FROM make_runs($1)", json_text([new_fields(new) for new in runs]))
        made = {made for (made,) in rows}
        if made:
            self._hints.send()
        outcomes = []
        for new in runs:
            outcomes.append(judge_create(taken=new.uid not in made))
            # Only the first row with a uid was inserted.
            made.discard(new.uid)
        return outcomes

    async def write_run(self, run: Append) -> Outcome:
        check_numbering([run])
        outcome = await self._pool.run(lambda session: write_whole(session, run))
        if outcome is Outcome.ACCEPTED:
            self._hints.send()
        return outcome

    async def write_together(self, batch: Sequence[Append], entry: AuditEntry | None = None) -> Sequence[Outcome]:
        check_numbering(batch)
        outcomes = await self._pool.run(lambda session: write_all(session, batch, entry))
        self._hints.send()
        return outcomes

    async def keys(self, uid: RunUid) -> Sequence[KeyRow]:
        text = (
            "SELECT k.key, k.digest, k.seq FROM runs r JOIN keys k ON k.run = r.num "
            'WHERE r.uid = $1 ORDER BY k.key COLLATE "C"'
        )
        return [KeyRow(*row) for row in await fetch(self._pool, text, uid)]

    async def inbox(self, uid: RunUid) -> Sequence[Mail]:
        return parse_mail(uid, await fetch(self._pool, _INBOX, uid))

    async def refers_to(self, uid: RunUid, digest: str) -> bool:
        return bool(await fetch_value(self._pool, REFERS_TO, digest, uid))

    async def mark_fault(self, uid: RunUid, fault: str | None, *, status: str | None = None) -> None:
        await fetch(self._pool, _MARK_FAULT, uid, fault, status)


def _concerns_others(append: Append) -> bool:
    """Return whether another host may have to act on the append, or waits for it."""
    return bool(append.mail or append.children) or append.status in OVER_STATUSES or append.reopen is not None


def _snapshot_of_row(uid: RunUid, fold: int, found: Record) -> Snapshot | None:
    if found["s_seq"] is None:
        return None
    snapshot = Snapshot(found["s_seq"], fold, found["s_body"])
    return snapshot if snapshot_crc(uid_crc(uid), snapshot) == found["s_crc"] else None


def _rows_of_columns(found: Record, *names: str) -> list[tuple[object, ...]]:
    """Convert columns, given as arrays, into rows. Bodies of events become bytes."""
    arrays = [found[name] or [] for name in names]
    if "e_body" in names:
        arrays[names.index("e_body")] = [body.encode() for body in arrays[names.index("e_body")]]
    return list(zip(*arrays, strict=True))
