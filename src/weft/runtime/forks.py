"""Fork runs: make a new run that shares the past of another one up to a point, and goes on from there.

The whole new run is decided here, from the committed log of the original, and written in one transaction. Nothing is
written if anything is wrong. Any host continues the fork.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from weft.core import events as e
from weft.core import values
from weft.core.ids import INTERNAL_WORKFLOWS, RunId, RunUid
from weft.errors import IdTaken, Refused
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome, RunRow
from weft.runtime.fork_log import ForkIdentity, ForkLog
from weft.runtime.fork_order import ForkOrder, check_order
from weft.runtime.orders import check_own_id, check_run_id
from weft.runtime.run.append_extras import FORKED_FROM
from weft.runtime.service import RunService


class Forked(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that was made."""

    id: str
    original: str
    seq: int
    """The number of the last event that both runs share."""
    status: str


class ForkService:
    """Forks runs, and finds the forks of a run."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def fork(self, run_id: str, order: ForkOrder, *, by: str = "", key: str | None = None) -> Forked:
        """Fork a run. The fork is durable when this returns. A repeated order with the same key makes no second fork.

        Raises NotFound, Refused, UsageError, BadValue, IdTaken, RunUnreadable: nothing was written.
        """
        check_order(order)
        values.encode([order.reason, by, *order.approved], what="the fork has")
        service = self._service
        row = await service.row(RunId(run_id))
        check_forkable(row)
        uid = RunUid(service.ids.new() if key is None else _uid_of(row.uid, key))
        known = await service.store.directory.row(uid)
        if known is not None:
            return await self._existing_fork(known, row)
        new_id = check_own_id(order.id) if order.id is not None else check_run_id(f"{row.id}~{uid[-6:]}")
        if await service.store.directory.find(RunId(new_id)) is not None:
            raise _id_taken(new_id)
        new = ForkIdentity(uid, service.stored_id(new_id), by)
        append, point = await ForkLog(service, row, order, new).append()
        unknown = f"the fork {new_id} may or may not have been made"
        outcome = await service.wait_for_store(
            service.write_run(append), unknown, hint="Look for it: weft list --forks"
        )
        if outcome is not Outcome.ACCEPTED:
            known = await service.store.directory.row(uid)
            if known is None:
                raise _id_taken(new_id)
            return await self._existing_fork(known, row)
        return Forked(id=new_id, original=row.id, seq=point, status=append.status or "running")

    async def _existing_fork(self, known: RunRow, original: RunRow) -> Forked:
        started = await self._service.reader.started_with(known)
        seq = started.forked_from.seq if isinstance(started, e.RunStarted) and started.forked_from is not None else 0
        return Forked(id=known.id, original=original.id, seq=seq, status=known.status)

    async def forks(self, row: RunRow, *, limit: int = 100) -> Sequence[RunRow]:
        """Return the forks of a run, newest first."""
        return (await self._service.search(forks_query(row, limit=limit))).rows

    async def original(self, row: RunRow) -> e.ForkedFrom | None:
        """Return the original of a fork."""
        if FORKED_FROM not in row.attributes:
            return None
        started = await self._service.reader.started_with(row)
        return started.forked_from if isinstance(started, e.RunStarted) else None


def forks_query(row: RunRow, **more: Any) -> RunQuery:
    """Return the search for the forks of a run."""
    return RunQuery(where={FORKED_FROM: row.uid}, internal=True, **more)


def check_forkable(row: RunRow) -> None:
    """Check that a run is one that can be forked. Raises Refused."""
    if row.workflow in INTERNAL_WORKFLOWS:
        raise Refused(f"{row.id} is a run of Weft itself, which cannot be forked.", code="fork.not_possible")
    if row.seq == 0:
        raise Refused(f"{row.id} has not begun, so there is nothing to fork.", code="fork.not_possible")
    if not row.style:  # it was cancelled before a host took it up
        raise Refused(
            f"{row.id} never began, so there is nothing to fork.",
            hint=f"Start it again under another id: weft start {row.workflow}",
            code="fork.not_possible",
        )


def _uid_of(original: str, key: str) -> str:
    return blake2b(f"{original}/fork/{key}".encode(), digest_size=16).hexdigest()


def _id_taken(run_id: str) -> IdTaken:
    return IdTaken(f"{run_id} exists already.", hint="Choose another id, or omit it.", run_id=run_id)
