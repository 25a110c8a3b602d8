"""The logs of runs in memory. Each method judges and then writes without suspending, so it is atomic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET

from weft.core.ids import Epoch, HostId, RunUid, Seq
from weft.errors import Corrupt
from weft.ports.blobs import LINKS_MAX
from weft.ports.new_run import NewRun
from weft.ports.retention import AuditEntry
from weft.ports.store import (
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
from weft.stores.judge import (
    NO_KEYS,
    KeyFacts,
    check_numbering,
    is_current,
    judge_append,
    judge_create,
    judge_recorded,
    judge_release,
    judge_together,
    may_claim,
    only_adds_to_ended,
    takes_slot,
)
from weft.stores.judge_starts import is_singleton
from weft.stores.memory.content import MemoryContent, StoredRun
from weft.stores.rows import NOBODY, free_id, merge_attributes


class MemoryLog:
    """The run log of a memory store."""

    commits_in_place = True
    hot = None

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        check_numbering(batch)
        return [self._commit_append(append, host) for append in batch]

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        run = self._content.runs.get(uid)
        if run is None:
            return None
        snapshot = run.snapshots.get(fold)
        if snapshot is not None and snapshot.seq < run.cut:
            snapshot = None
        after = run.cut if snapshot is None else snapshot.seq
        if run.cut + len(run.events) != run.seq:
            raise Corrupt(
                f"The log of run {run.id} ends at event {run.cut + len(run.events)} but should end at {run.seq}.",
                uid=uid,
            )
        rest = run.events[after - run.cut :]
        return Loaded(row=run.row(), snapshot=snapshot, events=rest, inbox=list(run.inbox.values()))

    async def events(self, uid: RunUid, *, after: Seq, limit: int) -> Sequence[StoredEvent]:
        run = self._content.runs.get(uid)
        if run is None:
            return []
        first = max(0, after - run.cut)
        return run.events[first : first + limit]

    async def claim(
        self, uids: Sequence[RunUid], host: HostId, *, expected: Mapping[RunUid, Epoch]
    ) -> Sequence[RunRow]:
        rows = []
        for uid in uids:
            run = self._content.runs.get(uid)
            if run is None or not is_current(run, expected.get(uid)):
                continue
            if not may_claim(run, host, drained=run.wal is None or self._content.is_drained(run.wal)):
                continue
            run.owner, run.epoch, run.wake_at = host, Epoch(run.epoch + 1), None
            run.wal = self._content.wal_of(host)
            rows.append(run.row())
        return rows

    async def release(self, releases: Sequence[Release]) -> Sequence[Outcome]:
        return [self._release_run(release) for release in releases]

    async def send(self, mail: Sequence[Mail]) -> Sequence[Sent]:
        sent = [self._content.deliver(msgspec.structs.replace(piece, urgent=False)) for piece in mail]
        for piece in mail:
            run = self._content.open.get(piece.to)
            if piece.urgent and run is not None and run.seq == 0 and run.owner is None:
                run.wake_at = None
        return sent

    async def create(self, runs: Sequence[NewRun]) -> Sequence[Outcome]:
        return [self._create_run(new) for new in runs]

    async def write_run(self, run: Append) -> Outcome:
        check_numbering([run])
        return self._commit_append(run, NOBODY)

    async def write_together(self, batch: Sequence[Append], entry: AuditEntry | None = None) -> Sequence[Outcome]:
        check_numbering(batch)
        outcomes = [self._judge_together(append) for append in batch]
        if all(outcome is Outcome.ACCEPTED for outcome in outcomes):
            if entry is not None and not self._content.write_once(entry):
                return judge_recorded(batch)
            for append in batch:
                self._write_append(self._content.runs[append.uid], append)
        return outcomes

    async def keys(self, uid: RunUid) -> Sequence[KeyRow]:
        run = self._content.runs.get(uid)
        return [] if run is None else [run.keys[key] for key in sorted(run.keys)]

    async def inbox(self, uid: RunUid) -> Sequence[Mail]:
        run = self._content.runs.get(uid)
        return [] if run is None else list(run.inbox.values())

    async def refers_to(self, uid: RunUid, digest: str) -> bool:
        content = self._content
        seen, left = {digest}, [digest]
        while left and len(seen) <= LINKS_MAX:
            child = left.pop(0)
            if uid in content.refs.get(child, ()):
                return True
            above = [parent for parent, blob in content.blobs.items() if child in blob.links and parent not in seen]
            seen.update(above)
            left += above
        return False

    async def mark_fault(self, uid: RunUid, fault: str | None, *, status: str | None = None) -> None:
        run = self._content.runs.get(uid)
        if run is not None:
            run.fault, run.wal = fault, run.wal if fault is None else None
            run.status = status if status is not None and run.is_open else run.status

    def _judge_together(self, append: Append) -> Outcome:
        run = self._content.runs.get(append.uid)
        hot = run is not None and run.wal is not None and not self._content.is_drained(run.wal)
        return judge_together(run, append, hot=hot)

    def _create_run(self, new: NewRun) -> Outcome:
        outcome = judge_create(taken=new.id in self._content.ids or new.uid in self._content.runs)
        if outcome is Outcome.ACCEPTED:
            self._content.add(new, new.id)
        return outcome

    def _release_run(self, release: Release) -> Outcome:
        run = self._content.runs.get(release.uid)
        outcome = judge_release(run, release)
        if run is not None and outcome is Outcome.ACCEPTED:
            run.owner, run.wal, run.wake_at = None, None, release.wake_at
            _store_snapshot(run, release.snapshot)
        return outcome

    def _commit_append(self, append: Append, host: HostId) -> Outcome:
        if append.create is not None:
            outcome = self._create_run(append.create)
        else:
            run = self._content.runs.get(append.uid)
            others = self._others_in_slot(run) if run is not None and takes_slot(append) else []
            outcome = judge_append(run, append, host, _key_facts(run, append), is_slot_taken=bool(others))
        if outcome is Outcome.ACCEPTED:
            self._write_append(self._content.runs[append.uid], append)
        return outcome

    def _others_in_slot(self, run: StoredRun) -> list[StoredRun]:
        """Return the other open runs that have the slot of a singleton."""
        return [one for one in self._content.with_slot(run.slot) if one is not run and is_singleton(run.slot)]

    def _write_append(self, run: StoredRun, append: Append) -> None:
        if append.events:
            run.events.extend(append.events)
            run.seq = append.events[-1].seq
            run.updated_at = append.events[-1].at
        _consume_mail(run, append)
        if append.resolved is not None:
            run.new = msgspec.structs.replace(run.new, version=append.resolved.version, style=append.resolved.style)
        if append.attributes is not None:
            run.attributes = merge_attributes(run.attributes, append.attributes)
        _store_snapshot(run, append.snapshot)
        self._content.add_refs(append.uid, append.refs)
        if append.idle_until is not UNSET:
            run.idle_until = append.idle_until
        only_adds = only_adds_to_ended(append, run.status)
        if append.reopen is not None and not only_adds:
            run.wake_at, run.ended_at, run.idle_until = append.reopen, None, None
            self._content.open[append.uid] = run
        if append.status is not None and not only_adds:
            run.status = append.status
            if append.status in OVER_STATUSES:
                run.owner, run.wal, run.wake_at, run.ended_at = None, None, None, run.updated_at
                del self._content.open[append.uid]
                # After a retry, nobody may take a task that ended with the run.
                self._content.drop_tasks(append.uid)
        for child in append.children:
            if child.uid not in self._content.runs:
                self._content.add(child, free_id(child, self._content.ids.__contains__))
        for mail in append.mail:
            self._content.deliver(mail)
        if append.ledger:
            append.answers = self._content.ledger.apply(append.uid, append.ledger)
            self._content.ledger.forget_changes()


def _key_facts(run: StoredRun | None, append: Append) -> KeyFacts:
    if run is None or not append.keys:
        return NO_KEYS
    return KeyFacts(run.keys, _taken_keys(run, append))


def _taken_keys(run: StoredRun, append: Append) -> set[str | None]:
    return {run.inbox[name].key for name in append.taken if name in run.inbox}


def _consume_mail(run: StoredRun, append: Append) -> None:
    """Consume mail. Its key becomes free unless an event uses it, so a rejected command uses up no key."""
    for key in _taken_keys(run, append):
        if key is not None:
            run.keys.pop(key, None)
    for name in append.taken:
        run.inbox.pop(name, None)
    for row in append.keys:
        run.keys[row.key] = row


def _store_snapshot(run: StoredRun, snapshot: Snapshot | None) -> None:
    if snapshot is not None:
        run.snapshots[snapshot.fold] = snapshot
