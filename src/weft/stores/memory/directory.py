"""Find runs in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from weft.core.ids import INTERNAL_WORKFLOWS, Epoch, HostId, Millis, RunId, RunUid
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.store import IMPORTED, NEVER, KeyRow, Page, RunRow
from weft.stores.memory.content import MemoryContent, StoredRun
from weft.stores.rows import canonical_json, make_cursor, parse_cursor


class MemoryDirectory:
    """The directory of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def find(self, id: RunId) -> RunRow | None:
        run = self._content.find(id)
        return None if run is None else run.row()

    async def row(self, uid: RunUid) -> RunRow | None:
        run = self._content.runs.get(uid)
        return None if run is None else run.row()

    async def search(self, query: RunQuery) -> Page:
        start = None if query.after is None else parse_cursor(query.after)
        where = {name: canonical_json(value) for name, value in query.where.items()}
        matching = sorted(
            (run for run in self._content.runs.values() if _matches_query(run, query, where)),
            key=_age_key,
            reverse=True,
        )
        rest = matching if start is None else [run for run in matching if _age_key(run) < start]
        rows = [run.row() for run in rest[: query.limit]]
        more = len(rest) > query.limit
        return Page(rows, make_cursor(rows[-1].created_at, rows[-1].uid) if more else None)

    async def count(self, queries: Sequence[RunQuery], *, limit: int) -> Sequence[RunCount]:
        found = []
        for query in queries:
            where = {name: canonical_json(value) for name, value in query.where.items()}
            total = sum(_matches_query(run, query, where) for run in self._content.runs.values())
            found.append(RunCount(min(total, limit), total > limit))
        return found

    async def workflows(self, prefix: str = "", *, limit: int) -> Sequence[str]:
        names = {run.new.workflow for run in self._content.runs.values()}
        return sorted(name for name in names if name.startswith(prefix))[:limit]

    async def key(self, uid: RunUid, key: str) -> KeyRow | None:
        run = self._content.runs.get(uid)
        return None if run is None else run.keys.get(key)

    async def claimable(
        self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId], now: Millis, limit: int
    ) -> Sequence[RunRow]:
        wanted, gone = set(workflows), set(dead)
        waiting = []
        for run in self._content.open.values():
            since = _waiting_since(run, gone, now)
            if since is None or (run.new.workflow, run.new.version) not in wanted or self._content.is_behind(run):
                continue
            waiting.append((-run.new.priority, since, run.new.created_at, run.new.uid, run))
        waiting.sort(key=lambda one: one[:4])
        return [run.row() for *_, run in waiting[:limit]]

    async def owned(self, host: HostId) -> Mapping[RunUid, Epoch]:
        runs = self._content.open.values()
        return {run.new.uid: run.epoch for run in runs if run.owner == host and run.fault is None}

    async def next_wake(self, workflows: Sequence[tuple[str, str]], *, dead: Sequence[HostId]) -> Millis | None:
        wanted, gone = set(workflows), set(dead)
        times = [
            run.wake_at if run.owner is None else run.idle_until
            for run in self._content.open.values()
            if (run.owner is None or run.owner in gone)
            and run.fault is None
            and run.status != "held"
            and (run.new.workflow, run.new.version) in wanted
            and not self._content.is_behind(run)
        ]
        return min((time for time in times if time is not None and time < NEVER), default=None)

    async def counts(self, below: RunUid | None = None, *, limit: int = 0) -> Mapping[str, int]:
        if below is not None:
            return dict(Counter(run.status for run in self._runs_below(below)[:limit]))
        runs = self._content.runs.values()
        return dict(Counter(run.status for run in runs if run.new.workflow not in INTERNAL_WORKFLOWS))

    async def open_versions(self, id_prefix: str = "") -> Mapping[tuple[str, str], int]:
        runs = (run for run in self._content.open.values() if run.id.startswith(id_prefix))
        return dict(Counter((run.new.workflow, run.new.version) for run in runs))

    def _runs_below(self, root: RunUid) -> list[StoredRun]:
        children: dict[RunUid, list[StoredRun]] = {}
        for run in self._content.open.values():
            if run.new.parent is not None:
                children.setdefault(run.new.parent, []).append(run)
        found = list(children.get(root, ()))
        for run in found:  # the list grows during the loop
            found.extend(children.get(run.new.uid, ()))
        return found


def _age_key(run: StoredRun) -> tuple[int, str]:
    return run.new.created_at, run.new.uid


def _matches_query(run: StoredRun, query: RunQuery, where: Mapping[str, str]) -> bool:
    new = run.new
    return (
        (query.workflow is None or new.workflow == query.workflow)
        and new.workflow not in query.leaves_out
        and (not query.any_status or run.status in query.any_status)
        and (query.style is None or new.style == query.style)
        and (query.version is None or new.version == query.version)
        and not (query.hides_imported and run.status == IMPORTED)
        and (query.since is None or new.created_at >= query.since)
        and (query.until is None or new.created_at < query.until)
        and (query.changed_before is None or run.updated_at < query.changed_before)
        and (not query.faulty or run.fault is not None)
        and (query.parent is None or new.parent == query.parent)
        and (query.id_prefix is None or run.id.startswith(query.id_prefix))
        and all(
            name in run.attributes and canonical_json(run.attributes[name]) == value for name, value in where.items()
        )
    )


def _waiting_since(run: StoredRun, dead: set[HostId], now: Millis) -> Millis | None:
    """Return since when an open run has waited to be claimed; None if it does not wait."""
    if run.fault is not None or (run.status == "held" and not run.inbox):
        return None
    reasons = []
    if run.owner is not None:
        if run.owner not in dead:
            return None
        if run.idle_until is None:
            reasons.append(run.updated_at)
        elif run.idle_until <= now:
            reasons.append(run.idle_until)
        if run.inbox:
            reasons.append(next(iter(run.inbox.values())).at)
        return min(reasons, default=None)
    if run.wake_at is not None and run.wake_at <= now:
        reasons.append(run.wake_at)
    # The start mail of a delayed start does not make the run due.
    if run.inbox and (run.seq or run.wake_at is None or run.wake_at <= now):
        reasons.append(next(iter(run.inbox.values())).at)
    return min(reasons, default=None)
