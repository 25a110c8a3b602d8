"""Delete and keep runs in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.core.ledger import run_of
from weft.ports.retention import (
    AuditEntry,
    Cleared,
    DoomOutcome,
    DoomResult,
    DoomRule,
    EndedPage,
    EndedQuery,
    EndedRun,
    StoreSize,
)
from weft.stores.memory.content import MemoryContent, StoredRun
from weft.stores.removal import RUNS_PER_CLEAR, TreeRun, judge_doom, with_counts, with_sums
from weft.stores.rows import make_cursor, parse_cursor


class MemoryRetention:
    """The retention of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def doom(self, uid: RunUid, rule: DoomRule, entry: AuditEntry | None = None) -> DoomResult:
        content = self._content
        tree = self._tree_of(uid)
        result = judge_doom([self._tree_facts(run, rule.named_by) for run in tree], rule)
        if result.outcome is DoomOutcome.DOOMED and not rule.dry_run:
            for run in tree:
                content.doomed[run.new.uid] = content.runs.pop(run.new.uid)
            if entry is not None:
                content.write_entry(with_counts(entry, result))
        return result

    async def doom_each(
        self, uids: Sequence[RunUid], rule: DoomRule, entry: AuditEntry | None = None
    ) -> Sequence[DoomResult]:
        results = [await self.doom(uid, rule) for uid in uids]
        written = with_sums(entry, results) if entry is not None and not rule.dry_run else None
        if written is not None:
            self._content.write_entry(written)
        return results

    async def clear(self, *, limit: int) -> Cleared:
        left, runs = limit, 0
        for uid, run in list(self._content.doomed.items())[:RUNS_PER_CLEAR]:
            left -= self._clear_parts(uid, run, left)
            if left <= 0:
                break
            del self._content.doomed[uid], self._content.ids[run.id]
            runs += 1
        return Cleared(limit - left, runs)

    async def is_doomed(self, id: RunId) -> bool:
        return id in self._content.ids and self._content.find(id) is None

    async def ended(self, query: EndedQuery) -> EndedPage:
        start = (-1, "") if query.after is None else parse_cursor(query.after)
        found = sorted(
            (run for run in self._content.runs.values() if _matches_query(run, query) and _age_key(run) > start),
            key=_age_key,
        )
        page = [_ended_run(run) for run in found[: query.limit]]
        more = len(found) > query.limit
        return EndedPage(page, make_cursor(page[-1].created_at, page[-1].uid) if more else None)

    async def clear_streams(self, *, ended_before: Millis, limit: int) -> int:
        gone = 0
        for uid, name in list(self._content.streams):
            run = self._content.runs.get(uid)
            if run is not None and run.ended_at is not None and run.ended_at <= ended_before and gone < limit:
                gone += len(self._content.streams.pop((uid, name)).chunks)
        return gone

    async def shorten(self, uid: RunUid, upto: int, *, limit: int) -> int:
        run = self._content.runs.get(uid)
        gone = 0 if run is None or upto >= run.seq else max(0, upto - run.cut)
        if run is not None and gone:
            del run.events[:gone]
            run.cut = upto
        return gone

    async def take_turn(self, host: HostId, *, now: Millis, lease_ms: int) -> bool:
        turn = self._content.turn
        if turn is not None and turn[0] != host and turn[1] > now:
            return False
        self._content.turn = (host, Millis(now + lease_ms))
        return True

    async def size(self, *, since: Millis) -> StoreSize:
        runs = self._content.runs.values()
        recent = sum(1 for run in runs if run.new.created_at >= since)
        return StoreSize(runs=len(runs), recent=recent, size_bytes=None)

    def _tree_of(self, root: RunUid) -> list[StoredRun]:
        """Return a run and all runs below it."""
        first = self._content.runs.get(root)
        if first is None:
            return []
        children: dict[RunUid, list[StoredRun]] = {}
        for run in self._content.runs.values():
            if run.new.parent is not None:
                children.setdefault(run.new.parent, []).append(run)
        found = [first]
        for run in found:  # the list grows during the loop
            found.extend(children.get(run.new.uid, ()))
        return found

    def _tree_facts(self, run: StoredRun, named_by: str | None) -> TreeRun:
        uid = run.new.uid
        named = named_by is not None and any(
            other.attributes.get(named_by) == uid for other in self._content.open.values()
        )
        return TreeRun(
            uid=uid,
            id=run.id,
            parent=run.new.parent,
            status=run.status,
            seq=run.seq,
            ended_at=run.ended_at,
            attributes=run.attributes,
            kept=uid in self._content.holds,
            named=named,
        )

    def _clear_parts(self, uid: RunUid, run: StoredRun, limit: int) -> int:
        """Delete up to ``limit`` rows of a doomed run. Returns how many."""
        left = limit - len(run.events[:limit])
        del run.events[:limit]
        parts: list[dict[Any, Any] | set[str]] = [run.inbox, run.posted, run.keys, run.snapshots]
        for part in parts:
            for key in list(part)[: max(0, left)]:
                part.discard(key) if isinstance(part, set) else part.pop(key)
                left -= 1
        for rows in (self._content.streams, self._content.tasks):
            for row in [row for row in rows if row[0] == uid][: max(0, left)]:
                del rows[row]  # type: ignore[arg-type]
                left -= 1
        printed = self._content.step_lines.get(uid)
        if printed is not None and left > 0:
            gone = len(printed.lines[:left])
            del printed.lines[:gone]
            left -= gone
            if left > 0:
                del self._content.step_lines[uid]
                left -= 1
        for digest in [digest for digest, uids in self._content.refs.items() if uid in uids][: max(0, left)]:
            self._content.refs[digest].discard(uid)
            if not self._content.refs[digest]:
                del self._content.refs[digest]
            left -= 1
        ledger = self._content.ledger
        for key in [key for key in ledger.rows if run_of(key[0]) == uid][: max(0, left)]:
            del ledger.rows[key]
            left -= 1
        for call in [call for call in ledger.reservations if call[0] == uid][: max(0, left)]:
            del ledger.reservations[call]
            left -= 1
        for run_id in [one for one, (taker, _) in self._content.start_ids.items() if taker == uid][: max(0, left)]:
            del self._content.start_ids[run_id]
            left -= 1
        return limit - left


def _age_key(run: StoredRun) -> tuple[int, str]:
    return run.new.created_at, run.new.uid


def _matches_query(run: StoredRun, query: EndedQuery) -> bool:
    new = run.new
    return (
        new.parent is None
        and run.status == query.status
        and run.ended_at is not None
        and run.ended_at <= query.ended_before
        and (query.workflow is None or new.workflow == query.workflow)
        and new.workflow not in query.without
        and (query.id_prefix is None or run.id.startswith(query.id_prefix))
    )


def _ended_run(run: StoredRun) -> EndedRun:
    new = run.new
    assert run.ended_at is not None
    return EndedRun(uid=new.uid, id=run.id, workflow=new.workflow, created_at=new.created_at, ended_at=run.ended_at)
