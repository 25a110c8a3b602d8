"""Move a tree of runs out of a store.

All runs of the tree that are open end in one transaction, each with the digest of the tree, if none of them has changed
since it was read. Only then a bundle is made. If the process dies before the bundle is written, moving the run again
makes the same bundle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import INTERNAL_WORKFLOWS, Millis, RunId, RunUid, Seq
from weft.core.machine import Machine
from weft.core.run.env import Env
from weft.core.run.moves import move_hint, work_in_flight
from weft.core.run.state import FOLD
from weft.errors import Corrupt, NotFound, Refused, RunFinished
from weft.ports.boundary import boundary
from weft.ports.retention import AuditEntry
from weft.ports.store import MOVED, OVER_STATUSES, Append, Mail, Outcome, RunRow, StoredEvent
from weft.runtime.bundles.export import Exporter
from weft.runtime.bundles.moved import MovingLog, find_entry, last_event, log_before_move, moved_tree_digest
from weft.runtime.finished_error import MOVED_TO, imported_error
from weft.runtime.schema_check import check_schema
from weft.runtime.service import RunService

TRIES_MAX = 40
PAUSE_SECONDS = 0.05
"""Between two tries, while runs of the tree change or have mail that their host takes up first."""


class MoveOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Where runs are moved, by whom and why. All of it is for people."""

    to: str = ""
    reason: str = ""
    by: str = ""


class _OpenRun(msgspec.Struct, frozen=True):
    row: RunRow
    machine: Machine


class _Busy(Exception):
    """The tree is changing right now."""


class Mover:
    """Moves runs of one caller."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def move(self, run_id: str, order: MoveOrder) -> bytes:
        """End a run and all runs below it here, and return the bundle with which another store goes on.

        A run that was moved already gives its bundle again.

        Raises NotFound, RunFinished, Refused, RunUnreadable, LimitExceeded.
        """
        row = await self._service.row(RunId(run_id))
        if row.status != MOVED:
            await self._check_movable(row)
            # The bundle is made once before, so that nothing refuses it when the runs have ended.
            await Exporter(self._service).bundle(row, tree=True, streams=True, moved="-")
            await self._end_tree(row, order)
            row = await self._service.row(RunId(run_id))
        return await self._make_bundle(row)

    async def _check_movable(self, row: RunRow) -> None:
        if row.status == "imported":
            raise imported_error(row)
        if row.status in OVER_STATUSES:
            hint = f"To look at it elsewhere: weft export {row.id} --tree"
            raise RunFinished(f"{row.id} is {row.status}, so there is nothing to move.", hint=hint, run_id=row.id)
        if row.workflow in INTERNAL_WORKFLOWS:
            raise Refused(f"{row.id} belongs to this store and cannot be moved.", hint="Make it anew in the other one.")
        if row.parent is not None:
            parent = await self._service.store.directory.row(row.parent)
            hint = "Move the run at the root of the tree" + (f", above {parent.id}." if parent is not None else ".")
            raise Refused(f"{row.id} is a child run; a tree moves as a whole.", hint=hint)
        if await self._service.store.holds.find([row.uid]):
            raise Refused(
                f"{row.id} is kept, so it must stay here.", hint=f"End the hold first: weft keep {row.id} --end"
            )

    # --- ending the runs here -------------------------------------------------------------------------------------

    async def _end_tree(self, root: RunRow, order: MoveOrder) -> None:
        why = ""
        for n in range(TRIES_MAX):
            if n:
                await asyncio.sleep(PAUSE_SECONDS)
            try:
                batch = await self._decide_appends(root, order)
            except _Busy as busy:
                why = str(busy)
                continue
            outcomes = await self._service.write_together(batch)
            if all(outcome is Outcome.ACCEPTED for outcome in outcomes):
                return
            why = f"{root.id} or a run below it keeps changing"
        raise Refused(f"{root.id} cannot be moved now: {why}.", hint=move_hint(root.id), code="bundle.in_flight")

    async def _decide_appends(self, root: RunRow, order: MoveOrder) -> list[Append]:
        """Read the whole tree, and decide to end every run of it that is open. Raises Refused with all findings."""
        exporter = Exporter(self._service)
        open_runs: list[_OpenRun] = []
        logs: list[MovingLog] = []
        for row in await exporter.tree(root):
            found = await self._read_open_run(row)
            events = [one async for one in self._service.reader.events(row) if one.seq <= row.seq]
            logs.append(MovingLog(row.uid, events, await self._service.store.log.keys(row.uid)))
            if len(events) != row.seq:
                raise _Busy(f"{row.id} is changing")
            if found is not None:
                open_runs.append(found)
        busy = [(one.row.id, place) for one in open_runs for place in work_in_flight(one.machine)]
        if busy:
            names = ", ".join(f"{place} of {run_id}" for run_id, place in busy[:10])
            more = f" and {len(busy) - 10} more" if len(busy) > 10 else ""
            raise Refused(
                f"{root.id} cannot be moved while work is in flight: {names}{more}.",
                hint=move_hint(root.id),
                code="bundle.in_flight",
            )
        digest = moved_tree_digest(logs)
        return [self._moving_append(one, digest, order) for one in open_runs]

    async def _read_open_run(self, row: RunRow) -> _OpenRun | None:
        """Return a run that is open, as of the row. Raises _Busy if that is not possible right now."""
        if row.status in OVER_STATUSES:
            return None
        if not row.seq:
            raise _Busy(f"{row.id} has not begun")
        loaded = await self._service.store.log.load(row.uid, fold=FOLD)
        if loaded is None or loaded.row.seq != row.seq or loaded.inbox:
            raise _Busy(f"{row.id} has mail that its host has not taken up")
        machine = await self._service.reader.machine(row)
        if machine.state.seq != row.seq:
            raise _Busy(f"{row.id} is changing")
        return _OpenRun(msgspec.structs.replace(loaded.row, id=row.id), machine)

    def _moving_append(self, run: _OpenRun, digest: str, order: MoveOrder) -> Append:
        row, machine = run.row, run.machine
        now = Millis(max(self._service.clock.now_ms(), machine.state.at))
        command = c.MoveRun(digest=digest, to=order.to, reason=order.reason, by=order.by)
        events: list[StoredEvent] = []
        mail: list[Mail] = []
        for event in machine.decide(command, Env(now=now, check=check_schema)):
            machine.evolve(event, at=now)
            events.append(StoredEvent(Seq(machine.state.seq), now, e.encode(event)))
            name, letters = f"{row.uid}/{machine.state.seq}", machine.mail(event)
            mail += [Mail(id=name, to=RunUid(one.to), body=c.encode(one.command), at=now) for one in letters]
        return Append(
            uid=row.uid,
            epoch=row.epoch,
            seq=row.seq,
            events=events,
            status=MOVED,
            attributes={MOVED_TO: order.to or f"the bundle {digest[:12]}"},
            mail=mail,
            mail_taken=row.mail,
        )

    # --- the bundle -----------------------------------------------------------------------------------------------

    async def _make_bundle(self, row: RunRow) -> bytes:
        """Make the bundle of a tree that was moved. Raises Corrupt if the tree is not what it was then."""
        moved = await self._moved_event(row)
        logs = []
        for one in await Exporter(self._service).tree(row):
            events: Sequence[StoredEvent] = [stored async for stored in self._service.reader.events(one)]
            logs.append(log_before_move(one.uid, events, await self._service.store.log.keys(one.uid)))
        if moved_tree_digest(logs) != moved.digest:
            raise Corrupt(f"The tree of {row.id} is not what it was when it was moved.")
        await self._record_in_audit(row, moved)
        return await Exporter(self._service).bundle(row, tree=True, streams=True, moved=moved.digest)

    async def _moved_event(self, row: RunRow) -> e.RunMoved:
        stored = await self._service.store.log.events(row.uid, after=Seq(row.seq - 1), limit=1)
        last = last_event(stored)
        if not isinstance(last, e.RunMoved):
            raise NotFound(f"{row.id} was not moved as a whole.")
        return last

    async def _record_in_audit(self, row: RunRow, moved: e.RunMoved) -> None:
        """Write the move into the audit table before there is a bundle: it outlives the run."""
        holds = self._service.store.holds
        if await find_entry(holds, row.id, "move", moved.digest) is None:
            boundary("move.record")
            await holds.record(
                AuditEntry(
                    at=self._service.clock.now_ms(),
                    verb="move",
                    run=row.id,
                    uid=row.uid,
                    workflow=row.workflow,
                    by=moved.by,
                    reason=moved.reason,
                    details={"digest": moved.digest, "to": moved.to},
                )
            )
