"""Delete what is old: runs, their output, and blobs that nothing refers to any more.

One pass goes through the roots that are over, oldest first. Each is judged again in the transaction that dooms its
tree, so that a pass never deletes what has changed since it was found. Passes on several hosts do no harm.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from weft.core import events as e
from weft.core.ids import Millis, RunId, RunUid, Seq, tenant_prefix
from weft.core.schedule.calendar import WORKFLOW
from weft.core.schedule.style import CARRY_EVERY
from weft.ports.boundary import boundary
from weft.ports.clock import Clock
from weft.ports.retention import AuditEntry, DoomOutcome, DoomResult, DoomRule, EndedQuery, EndedRun, StoreSize
from weft.ports.run_query import RunQuery
from weft.ports.store import MOVED, OVER_STATUSES, RunRow, Store
from weft.runtime.library import STYLE
from weft.runtime.retention_pace import WriteSize
from weft.runtime.retention_policy import STATUSES, RetentionPolicy
from weft.runtime.run.append_extras import DEAD_LETTERS, FORKED_FROM

PAGE = 100
TREES_PER_WRITE = 100
ROWS_PER_WRITE = 500
BLOBS_PER_WRITE = 100
BLOB_UNTOUCHED_MS = 24 * 3600 * 1000
"""A blob that nothing refers to is deleted when it was not stored again for this long."""
DAY_MS = 24 * 3600 * 1000
VERSION_UNUSED_MS = 7 * DAY_MS
"""A version that nothing names is deleted when it was not stored again for this long."""
VERSIONS_EVERY_MS = 3600 * 1000
"""How often a collector looks for such versions, because it goes through all of them."""
VERSIONS_PER_LOOK = 100
SHORTEN_EVERY_MS = DAY_MS
"""How often a collector looks for logs of schedules that can be shortened, because it reads them."""
KEPT_AS = {MOVED: "completed"}
"""The status whose age counts for roots with another status."""

NOT_EXPORTED = "not_exported"
"""Why a tree stays of which no copy could be made."""

ExportTree = Callable[[EndedRun], Awaitable[bool]]
"""Makes a copy of a tree before it is deleted. Returns False if that is not possible; then the tree stays."""
Pause = Callable[[], Awaitable[object]]
"""Called before every write. It may wait, to leave the store to others."""


class GcReport(msgspec.Struct, kw_only=True):
    """What a pass deleted, or would delete."""

    dry_run: bool
    trees: int = 0
    runs: int = 0
    events: int = 0
    dead_letters: int = 0
    """How many of these runs had open dead letters. Their roots had failed or were cancelled."""
    chunks: int = 0
    """Stored output of runs that are kept."""
    blobs: int = 0
    versions: int = 0
    """Versions of workflows that nothing named."""
    kept: dict[str, int] = {}
    """Trees that are old enough and stay, by reason."""


class GcOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass is for."""

    policy: RetentionPolicy
    where: RunQuery | None = None
    """Only roots that this search finds. Then output and blobs are left alone."""
    dry_run: bool = False
    by: str = ""
    reason: str = ""
    export: ExportTree | None = None


async def _no_pause() -> None:
    await asyncio.sleep(0)


class Collector:
    """Deletes what a policy no longer keeps."""

    def __init__(self, store: Store, clock: Clock, *, pause: Pause = _no_pause) -> None:
        self._store = store
        self._clock = clock
        self._pause = pause
        self._newest: dict[tuple[str, str], tuple[int, str] | None] = {}
        """The oldest run that ``keep_last`` keeps, by workflow and tenant, as this pass found it."""
        self._versions_looked_at: Millis | None = None
        self._schedules_looked_at: Millis | None = None
        self._trees, self._rows, self._blobs = map(WriteSize, (TREES_PER_WRITE, ROWS_PER_WRITE, BLOBS_PER_WRITE))

    async def collect(self, order: GcOrder) -> GcReport:
        """Go through everything once. Returns what was deleted."""
        report = GcReport(dry_run=order.dry_run)
        if not order.dry_run:
            await self.clear()  # what a process that died has left
        self._newest.clear()
        async for page in self._pages_of_ended_runs(order):
            before = report.trees
            await self._doom_page(order, page, report)
            if not order.dry_run and report.trees > before:
                await self.clear()
        if order.where is None:
            await self._collect_rest(order, report)
        return report

    async def clear(self) -> None:
        """Delete everything that belongs to doomed runs, and what limits have counted in windows that are over."""
        while True:
            async with self._timed_write(self._rows) as rows:
                gone = await self._store.retention.clear(limit=rows)
            boundary("retention.cleared")
            if not gone.rows and not gone.runs:
                break
        await self._store.budgets.forget(ended_before=self._clock.now_ms())

    @asynccontextmanager
    async def _timed_write(self, size: WriteSize) -> AsyncIterator[int]:
        """Wait until it is time for a write. Gives how much it may delete, and learns from how long it takes."""
        await self._pause()
        began = self._clock.monotonic()
        yield size.now
        size.adapt(self._clock.monotonic() - began)

    async def _doom_page(self, order: GcOrder, page: Sequence[tuple[str, EndedRun]], report: GcReport) -> None:
        """Doom what is old enough of a page, several trees in one write."""
        old: dict[int, list[EndedRun]] = {}
        for status, run in page:
            age = order.policy.age(KEPT_AS.get(status, status), run.workflow, run.id)
            if age is None or run.ended_at > self._clock.now_ms() - age:
                continue
            if await self._is_among_last(order.policy, run):
                _count_kept(report, "keep_last")
            else:
                old.setdefault(age, []).append(run)
        for age, runs in old.items():
            rule = DoomRule(
                ended_before=Millis(self._clock.now_ms() - age),
                unsettled=DEAD_LETTERS,
                settled=True,
                named_by=FORKED_FROM,
                dry_run=order.dry_run,
            )
            first = 0
            while first < len(runs):
                uids = await self._export_trees(order, runs[first : first + self._trees.now], rule, report)
                async with self._timed_write(self._trees) as trees:
                    results = await self._store.retention.doom_each(uids, rule, self._audit_entry(order))
                first += trees
                for result in results:
                    _add_to_report(report, result)
                boundary("retention.doomed")

    async def _export_trees(
        self, order: GcOrder, runs: Sequence[EndedRun], rule: DoomRule, report: GcReport
    ) -> Sequence[RunUid]:
        """Export those trees that are about to be deleted, if that is asked for. Returns the trees to doom."""
        if order.export is None or order.dry_run:
            return [run.uid for run in runs]
        judged = await self._store.retention.doom_each(
            [run.uid for run in runs], msgspec.structs.replace(rule, dry_run=True)
        )
        uids = []
        for run, result in zip(runs, judged, strict=True):
            if result.outcome is not DoomOutcome.DOOMED or await order.export(run):
                uids.append(run.uid)  # one that must stay is counted by the judgement that follows
            else:
                _count_kept(report, NOT_EXPORTED)
            boundary("retention.exported")
        return uids

    async def _is_among_last(self, policy: RetentionPolicy, run: EndedRun) -> bool:
        """Return whether the run is one of the newest of its workflow and tenant that are kept in any case."""
        count = policy.keep_last(run.workflow, run.id)
        if not count:
            return False
        prefix = tenant_prefix(run.id)
        key = (run.workflow, prefix)
        if key not in self._newest:
            query = RunQuery(workflow=run.workflow, id_prefix=prefix or None, limit=count)
            rows = (await self._store.directory.search(query)).rows
            self._newest[key] = (rows[-1].created_at, rows[-1].uid) if rows else None
        oldest_kept = self._newest[key]
        return oldest_kept is not None and (run.created_at, run.uid) >= oldest_kept

    async def _pages_of_ended_runs(self, order: GcOrder) -> AsyncIterator[list[tuple[str, EndedRun]]]:
        if order.where is not None:
            async for found in self._pages_of_search(order.where):
                yield found
            return
        for status in (*STATUSES, *KEPT_AS):
            kept_as = KEPT_AS.get(status, status)
            age = order.policy.shortest(kept_as)
            if age is None:
                continue
            after: str | None = None
            while True:
                query = EndedQuery(
                    status=status,
                    ended_before=Millis(self._clock.now_ms() - age),
                    without=order.policy.kept_workflows(kept_as),
                    limit=PAGE,
                    after=after,
                )
                page = await self._store.retention.ended(query)
                yield [(status, run) for run in page.runs]
                after = page.cursor
                if after is None:
                    break

    async def _pages_of_search(self, query: RunQuery) -> AsyncIterator[list[tuple[str, EndedRun]]]:
        """Yield the roots that are over, of all that a search finds."""
        after: str | None = None
        while True:
            page = await self._store.directory.search(msgspec.structs.replace(query, limit=PAGE, after=after))
            yield [
                (row.status, _ended_run(row))
                for row in page.rows
                if row.parent is None and row.status in OVER_STATUSES and row.ended_at is not None
            ]
            after = page.cursor
            if after is None:
                return

    def _audit_entry(self, order: GcOrder) -> AuditEntry:
        """Return the entry of the audit table for one write of the pass. The store adds how much is deleted."""
        return AuditEntry(
            at=self._clock.now_ms(),
            verb="gc",
            run=RunId(""),
            uid=RunUid(""),
            workflow="",
            by=order.by,
            reason=order.reason,
        )

    async def _collect_rest(self, order: GcOrder, report: GcReport) -> None:
        """Delete old output, and blobs that nothing refers to. A blob goes before those to which it refers."""
        if order.dry_run:
            return
        age = order.policy.default.ages.get("streams")
        while age is not None:
            before = Millis(self._clock.now_ms() - age)
            async with self._timed_write(self._rows) as rows:
                gone = await self._store.retention.clear_streams(ended_before=before, limit=rows)
            report.chunks += gone
            if not gone:
                break
        while True:
            now = self._clock.now_ms()
            async with self._timed_write(self._blobs) as blobs:
                gone = await self._store.blobs.sweep(now=now, untouched_ms=BLOB_UNTOUCHED_MS, limit=blobs)
            boundary("retention.swept")
            report.blobs += gone
            if not gone:
                break
        await self._collect_versions(report)
        await self._shorten_schedules(report)

    async def _shorten_schedules(self, report: GcReport) -> None:
        """Delete the beginning of the logs of schedules: what lies before the last state but one that they carry."""
        now = self._clock.now_ms()
        if self._schedules_looked_at is not None and now - self._schedules_looked_at < SHORTEN_EVERY_MS:
            return
        self._schedules_looked_at = now
        after: str | None = None
        while True:
            page = await self._store.directory.search(RunQuery(workflow=WORKFLOW, limit=PAGE, after=after))
            for row in page.rows:
                if row.seq > 2 * CARRY_EVERY and row.status not in OVER_STATUSES:
                    await self._shorten_log(row.uid, report)
            after = page.cursor
            if after is None:
                return

    async def _shorten_log(self, uid: RunUid, report: GcReport) -> None:
        carried: list[int] = []
        seq = Seq(0)
        while True:
            events = await self._store.log.events(uid, after=seq, limit=ROWS_PER_WRITE)
            carried += [one.seq for one in events if isinstance(e.decode(one.body), e.ScheduleCarried)]
            if len(events) < ROWS_PER_WRITE:
                break
            seq = events[-1].seq
            await self._pause()
        while len(carried) > 1:
            async with self._timed_write(self._rows) as rows:
                gone = await self._store.retention.shorten(uid, carried[-2] - 1, limit=rows)
            boundary("retention.shortened")
            report.events += gone
            if not gone:
                return

    async def _collect_versions(self, report: GcReport) -> None:
        """Delete versions that no run, tag or living host names. Runs of schedules have the version of their start."""
        now = self._clock.now_ms()
        if self._versions_looked_at is not None and now - self._versions_looked_at < VERSIONS_EVERY_MS:
            return
        self._versions_looked_at = now
        before = Millis(now - VERSION_UNUSED_MS)
        hosted = {
            (name, version)
            for host in await self._store.hosts.list_all()
            if not host.gone
            for name, offered in host.about.get("versions", {}).items()
            for version in offered
        }
        limit = VERSIONS_PER_LOOK + len(hosted)
        for name, version in await self._store.definitions.unused(STYLE, before=before, limit=limit):
            if (name, version) not in hosted:
                await self._pause()
                report.versions += await self._store.definitions.remove(name, version, before=before)
                boundary("retention.version")


def growth_sentence(size: StoreSize) -> str:
    """Say how fast a store grows from which nothing is deleted. ``size`` counts the runs of the last day."""
    grows = f"{size.recent:,} of {size.runs:,} runs are of the last day"
    if size.size_bytes is not None and size.runs:
        per_day = size.size_bytes * size.recent / size.runs / 2**20
        grows = f"{grows}, about {per_day:,.1f} MiB of {size.size_bytes / 2**20:,.1f} MiB"
    return f"{grows}. Nothing is deleted: [tool.weft.retention] is not set."


def _add_to_report(report: GcReport, result: DoomResult) -> None:
    """Add the judgement on a tree to the report."""
    if result.outcome is DoomOutcome.DOOMED:
        report.trees += 1
        report.runs += result.runs
        report.events += result.events
        report.dead_letters += result.unsettled
    elif result.outcome is not DoomOutcome.UNKNOWN_RUN:
        _count_kept(report, str(result.outcome))


def _count_kept(report: GcReport, reason: str) -> None:
    report.kept = dict(Counter(report.kept) + Counter({reason: 1}))


def _ended_run(row: RunRow) -> EndedRun:
    assert row.ended_at is not None
    return EndedRun(uid=row.uid, id=row.id, workflow=row.workflow, created_at=row.created_at, ended_at=row.ended_at)
