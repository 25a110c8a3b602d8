"""Delete a run with its tree, and keep a tree from deletion. Who did it, when and why stays in the audit table."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core import values
from weft.core.ids import RunId
from weft.errors import NotFound, NotOver, Refused, RunKept, UsageError
from weft.ports.boundary import boundary
from weft.ports.retention import NEWEST, AuditEntry, DoomOutcome, DoomResult, DoomRule, Retention
from weft.ports.run_query import RunQuery
from weft.ports.store import OVER_STATUSES, RunRow
from weft.runtime.run.append_extras import DEAD_LETTERS, FORKED_FROM
from weft.runtime.service import RunService

ROWS_PER_CLEAR = 500
"""How many rows one transaction of a deletion deletes."""
DELETION = DoomRule(unsettled=DEAD_LETTERS, named_by=FORKED_FROM)
"""What must hold of a tree that somebody deletes."""
BUSY_SECONDS = 0.05
"""How long to wait while another process deletes the same rows."""


class DeletedTree(msgspec.Struct, frozen=True, kw_only=True):
    """A tree that was deleted, and how much it was."""

    id: str
    runs: int
    events: int
    dead_letters: int


class LegalHold(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a tree is kept from deletion, since when, by whom and why."""

    id: str
    kept: bool
    by: str = ""
    reason: str = ""
    at: int | None = None
    """Milliseconds since 1970."""


class DeletionService:
    """Deletes and keeps runs, as one caller may see them."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._retention = service.store.retention
        self._holds = service.store.holds

    async def delete(self, run_id: RunId, reason: str, *, by: str = "", key: str | None = None) -> DeletedTree:
        """Delete a run and all runs below it. Nothing is left of them when this returns; their ids are free.

        Raises:
            NotOver: a run of the tree is still open.
            RunKept: a hold lies on the tree.
            Refused: the run has a parent, or an open run was forked from the tree.
            NotFound: there is no such run. With the same key, a repeated call returns the same result instead.
        """
        _check_reason(reason)
        try:
            row = await self._service.row(run_id)
        except NotFound:
            done = await self._deleted_before(run_id, key)
            if done is None:
                raise
            await clear_doomed(self._retention, run_id)
            return done
        details = {} if key is None else {"key": key}
        entry = self._audit_entry("delete", row, reason, by, details)
        result = await self._retention.doom(row.uid, DELETION, entry)
        if result.outcome is not DoomOutcome.DOOMED:
            raise await self.refusal(run_id, result)
        boundary("retention.doomed")
        await clear_doomed(self._retention, run_id)
        return DeletedTree(id=run_id, runs=result.runs, events=result.events, dead_letters=result.unsettled)

    async def keep(self, run_id: RunId, reason: str, *, by: str = "") -> LegalHold:
        """Put a hold on the tree of a run: nobody deletes any of it before ``end_keep``.

        The same hold again changes nothing. Raises RunKept if there is another: a tree has one hold at a time, so that
        none ends with another.
        """
        _check_reason(reason)
        root = await self._root_of(run_id)
        added = await self._holds.add(root.uid, self._audit_entry("keep", root, reason, by))
        hold = await self.hold(run_id)
        if not added and not hold.kept:  # the other one ended meanwhile
            return await self.keep(run_id, reason, by=by)
        if not added and (hold.by, hold.reason) != (by, reason):
            raise _another_hold(hold)
        return hold

    async def end_keep(self, run_id: RunId, reason: str = "", *, by: str = "") -> LegalHold:
        """End the hold on the tree of a run. Does nothing if there is none."""
        values.encode(reason, what="the reason has")
        root = await self._root_of(run_id)
        await self._holds.end(root.uid, self._audit_entry("keep_end", root, reason, by))
        return await self.hold(run_id)

    async def hold(self, run_id: RunId) -> LegalHold:
        """Return the hold on the tree of a run, if there is one."""
        root = await self._root_of(run_id)
        found = (await self._holds.find([root.uid])).get(root.uid)
        if found is None:
            return LegalHold(id=root.id, kept=False)
        return LegalHold(id=root.id, kept=True, by=found.by, reason=found.reason, at=found.at)

    async def audit(
        self, run_id: RunId | None = None, *, before: int = NEWEST, limit: int = 100
    ) -> Sequence[AuditEntry]:
        """Return who deleted or kept what, newest first: the entries with numbers below ``before``."""
        return await self._holds.audit(run=run_id, before=before, limit=limit)

    async def refusal(self, run_id: RunId, result: DoomResult) -> Refused:
        """Return the error for a deletion that the store refused."""
        if result.outcome is not DoomOutcome.NAMED or result.run is None:
            return deletion_refusal(run_id, result)
        original = await self._service.row(result.run)
        query = RunQuery(where={FORKED_FROM: original.uid}, internal=True)
        forks = [fork.id for fork in (await self._service.search(query)).rows if fork.status not in OVER_STATUSES]
        return _open_forks(run_id, result.run, forks)

    async def _root_of(self, run_id: RunId) -> RunRow:
        row = await self._service.row(run_id)
        while row.parent is not None:
            above = await self._service.store.directory.row(row.parent)
            if above is None:
                break
            row = above
        return row

    async def _deleted_before(self, run_id: RunId, key: str | None) -> DeletedTree | None:
        """Return what the call with this key has deleted, if there was one."""
        for entry in await self._holds.audit(run=run_id, limit=1) if key is not None else ():
            if entry.verb == "delete" and entry.details.get("key") == key:
                counts = {name: entry.details[name] for name in ("runs", "events", "dead_letters")}
                return DeletedTree(id=run_id, **counts)
        return None

    def _audit_entry(
        self, verb: str, row: RunRow, reason: str, by: str, details: Mapping[str, Any] | None = None
    ) -> AuditEntry:
        return AuditEntry(
            at=self._service.clock.now_ms(),
            verb=verb,
            run=row.id,
            uid=row.uid,
            workflow=row.workflow,
            by=by,
            reason=reason,
            details=details or {},
        )


async def clear_doomed(retention: Retention, run_id: RunId) -> None:
    """Delete everything that belongs to doomed runs, until nothing of this run is left."""
    while True:
        gone = await retention.clear(limit=ROWS_PER_CLEAR)
        boundary("retention.cleared")
        if gone.rows or gone.runs:
            continue
        if not await retention.is_doomed(run_id):
            return
        await asyncio.sleep(BUSY_SECONDS)


def deletion_refusal(run_id: str, result: DoomResult) -> Refused:
    """Return the error for a deletion that the store refused."""
    culprit = run_id if result.run in (None, run_id) else f"{result.run}, which belongs to {run_id},"
    match result.outcome:
        case DoomOutcome.OPEN:
            return NotOver(
                f"{culprit} is not over, so {run_id} is not deleted.",
                hint=f"Wait for its end, or cancel it: weft cancel {result.run or run_id}",
                run_id=run_id,
            )
        case DoomOutcome.KEPT:
            return RunKept(
                f"A hold lies on {run_id}, so it is not deleted.",
                hint=f"weft keep {run_id} shows it; weft keep {run_id} --end ends it.",
                run_id=run_id,
            )
        case DoomOutcome.NOT_ROOT:
            return Refused(
                f"{run_id} is the child of another run, so it is not deleted alone.",
                hint="Delete the run at the top of its tree: weft show names it.",
                code="run.not_root",
                run_id=run_id,
            )
        case DoomOutcome.UNKNOWN_RUN:
            return NotFound(f"{run_id} was deleted meanwhile.", run_id=run_id)
        case DoomOutcome.TOO_YOUNG | DoomOutcome.UNSETTLED | DoomOutcome.NAMED | DoomOutcome.DOOMED:
            return Refused(f"{culprit} is not deleted yet ({result.outcome}).", run_id=run_id)


def _open_forks(run_id: str, original: str, forks: Sequence[str]) -> Refused:
    names = ", ".join(forks[:10]) or "a run that you do not see"
    more = f" and {len(forks) - 10} more" if len(forks) > 10 else ""
    return Refused(
        f"{names}{more} was forked from {original} and is open, so {run_id} is not deleted.",
        hint=f"Wait for its end, or cancel it: weft cancel {forks[0] if forks else 'FORK'}",
        code="run.forked",
        run_id=run_id,
    )


def _another_hold(hold: LegalHold) -> RunKept:
    who = f" by {hold.by}" if hold.by else ""
    return RunKept(
        f"{hold.id} is kept already{who} ({hold.reason}). A tree has one hold, so yours was not added.",
        hint=f"To have it kept for both reasons, end that hold and name both: weft keep {hold.id} --end, "
        f'then weft keep {hold.id} --reason "…"',
        run_id=hold.id,
    )


def _check_reason(reason: str) -> None:
    values.encode(reason, what="the reason has")
    if not reason.strip():
        raise UsageError("Say why: a reason is recorded in the audit table.", hint='weft delete RUN --reason "…"')
