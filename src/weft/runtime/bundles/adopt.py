"""Adopt a tree of runs that another store has given up.

First the runs are imported like any others, so that no host continues them yet. Then one transaction opens all of them:
it writes an event with the digest of the bundle to each run, and an entry to the audit table. The entry outlives the
runs, so a bundle is adopted only once. If the process dies in between, the runs stay imported, and the next attempt
continues with them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import Millis, RunId, RunUid, Seq, tenant_prefix
from weft.core.ledger import Move
from weft.core.run.covers import OpenCovers
from weft.core.run.env import Env
from weft.errors import IdTaken, NotAllowed, NotFound, Refused
from weft.ports.boundary import boundary
from weft.ports.retention import AuditEntry
from weft.ports.store import IMPORTED, MOVED, OVER_STATUSES, Append, Outcome, Resolved, RunRow, StoredEvent
from weft.runtime.bundles.archive import CheckedBundle, CheckedRun
from weft.runtime.bundles.format import log_bytes
from weft.runtime.bundles.importer import STATUS, Imported, Importer, check_own_ids
from weft.runtime.bundles.moved import check_moved, find_entry, keys_of, last_event
from weft.runtime.finished_error import MOVED_TO
from weft.runtime.schema_check import check_schema
from weft.runtime.service import RunService


class Adopter:
    """Adopts runs for one caller."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def adopt(self, bundle: CheckedBundle, by: str = "") -> Imported:
        """Continue the runs of a bundle here, under their ids and uids. Does nothing if it was adopted before.

        Raises UsageError, Corrupt, IdTaken, Refused, and NotAllowed for a tenant.
        """
        self._refuse_tenant()
        check_moved(bundle)
        check_own_ids(bundle)
        self._check_ids(bundle)
        if await self._is_adopted(bundle):
            return await Importer(self._service).describe(bundle, created=frozenset())
        await self._check_rows(bundle)
        fresh = {run.about.uid for run in bundle.runs if await self._row_of_run(run) is None}
        await Importer(self._service).write_new(bundle, fresh)
        while True:
            await self._check_rows(bundle)
            batch = [
                append for run in bundle.runs if (append := await self._reopening_append(run, bundle, by)) is not None
            ]
            boundary("adopt.before")
            outcomes = await self._service.write_together(batch, self._audit_entry(bundle, by))
            boundary("adopt.after")
            if all(outcome is Outcome.ACCEPTED for outcome in outcomes):
                return await Importer(self._service).describe(bundle, created={one.uid for one in batch})
            if await self._is_adopted(bundle):  # by somebody else, at the same time
                return await Importer(self._service).describe(bundle, created=frozenset())

    # --- whether it may be adopted --------------------------------------------------------------------------------

    def _refuse_tenant(self) -> None:
        """Refuse to adopt for a tenant. Raises NotAllowed.

        A run that is adopted keeps its uid, which is unique in the whole store. So the answer to a forged
        bundle would reveal whether another tenant has a run with this uid.
        """
        if tenant_prefix(self._service.stored_id("x")):
            raise NotAllowed(
                "Only the operator can adopt runs.",
                hint="Let the operator import the bundle with --adopt, or import it without --adopt and fork it.",
            )

    def _check_ids(self, bundle: CheckedBundle) -> None:
        for run in bundle.runs:
            first = e.decode(run.events[0].body)
            if isinstance(first, e.RunStarted) and first.run_id != self._service.stored_id(run.about.id):
                raise Refused(
                    f"{run.about.id} belonged to another tenant, as {first.run_id}, so its id would be different here.",
                    hint="Import it without --adopt, and fork it.",
                )

    async def _is_adopted(self, bundle: CheckedBundle) -> bool:
        """Return whether this bundle was adopted here before."""
        row = await self._row_of_run(bundle.run(bundle.manifest.root))
        if row is None or row.status == IMPORTED:
            return False
        digest = bundle.manifest.moved
        async for stored in self._service.reader.events(row):
            event = e.decode(stored.body)
            if isinstance(event, e.RunAdopted) and event.digest == digest:
                return True
        return False

    async def _check_rows(self, bundle: CheckedBundle) -> None:
        """Raise Refused or IdTaken if a run of the bundle cannot continue here."""
        root = bundle.run(bundle.manifest.root).about
        above = await self._row_of_run(bundle.run(root.uid))
        if above is None or above.status == IMPORTED:  # also a copy that was imported after the run was deleted
            await self._check_audit(root.id, bundle.manifest.moved)
        for run in bundle.runs:
            row = await self._row_of_run(run)
            if row is None:
                await self._check_free(run)
                continue
            here = await self._events_here(row, len(run.events) + 1)
            if row.status == MOVED and len(here) == len(run.events) and run.about.uid == root.uid:
                raise Refused(
                    f"{row.id} was moved away from here with this bundle, and continues in another store.",
                    hint="Adopt it there. To bring it back, move it from there.",
                    code="run.moved",
                )
            if row.id != run.about.id or not _is_prefix(row.uid, here, run) or row.status not in OVER_STATUSES:
                raise IdTaken(
                    f"This store already has {row.id}, with the uid {row.uid} of a run in the bundle.",
                    hint=f"If it is an imported copy, delete it first: weft delete {row.id}",
                    run_id=row.id,
                )

    async def _check_audit(self, run_id: str, digest: str) -> None:
        """Raise Refused if the run was here before and was deleted since."""
        for verb, what in (("adopt", "adopted here"), ("move", "moved away from here")):
            entry = await find_entry(self._service.store.holds, run_id, verb, digest)
            if entry is not None:
                raise Refused(
                    f"{run_id} was {what} with this bundle, and deleted since; its work would be performed twice.",
                    hint="Import it without --adopt, and fork it.",
                    code="run.moved",
                )

    async def _check_free(self, run: CheckedRun) -> None:
        if await self._service.store.directory.find(self._service.stored_id(run.about.id)) is not None:
            raise IdTaken(
                f"The id {run.about.id} is taken, and a run that is moved keeps its id.",
                hint=f"Delete that run, or import the bundle without --adopt: weft delete {run.about.id}",
                run_id=run.about.id,
            )

    # --- opening the runs here ------------------------------------------------------------------------------------

    async def _reopening_append(self, run: CheckedRun, bundle: CheckedBundle, by: str) -> Append | None:
        """Return the append that restores the status a run had before the move; None if the run has it already."""
        row = await self._row_of_run(run)
        if row is None:
            raise NotFound(f"{run.about.id} was deleted meanwhile.", run_id=run.about.id)
        if row.status not in (IMPORTED, MOVED) and row.seq == len(run.events):
            return None
        about, service = run.about, self._service
        rest = list(run.events[row.seq :])
        program = msgspec.structs.replace(row, version=about.version, style=about.style)
        machine = await service.reader.empty_machine(program, row.uid, run.events)
        moves = list[Move]()
        covers = OpenCovers(machine.state)
        for stored in run.events:
            event = e.decode(stored.body)
            machine.evolve(event, at=stored.at)
            if machine.state.accounted and row.status == IMPORTED:  # it is not in the ledger of this store yet
                moves += covers.moves(machine.state, event, machine.effects(event))
        now = Millis(max(service.clock.now_ms(), machine.state.at))
        if isinstance(last_event(run.events), e.RunMoved):
            for event in machine.decide(
                c.AdoptRun(digest=bundle.manifest.moved, by=by), Env(now=now, check=check_schema)
            ):
                machine.evolve(event, at=now)
                rest.append(StoredEvent(Seq(machine.state.seq), now, e.encode(event)))
        known = {row.key for row in await service.store.log.keys(row.uid)}
        gone = dict.fromkeys((*row.attributes, STATUS, MOVED_TO))
        attributes = {name: value for name, value in about.attributes.items() if name != MOVED_TO}
        return Append(
            uid=row.uid,
            epoch=row.epoch,
            seq=row.seq,
            events=rest,
            status=machine.state.status,
            reopen=now,
            attributes=gone | attributes,
            resolved=Resolved(about.version, about.style),
            keys=[key for key in keys_of(run) if key.key not in known],
            refs=run.blobs,
            mail_taken=row.mail,
            ledger=moves,
        )

    def _audit_entry(self, bundle: CheckedBundle, by: str) -> AuditEntry:
        """Return the entry of the audit table, which is written with the adoption, and outlives the run."""
        about = bundle.run(bundle.manifest.root).about
        return AuditEntry(
            at=self._service.clock.now_ms(),
            verb="adopt",
            run=RunId(about.id),
            uid=RunUid(about.uid),
            workflow=about.workflow,
            by=by,
            reason="",
            details={"digest": bundle.manifest.moved},
        )

    # --- reads ----------------------------------------------------------------------------------------------------

    async def _row_of_run(self, run: CheckedRun) -> RunRow | None:
        return await self._service.store.directory.row(RunUid(run.about.uid))

    async def _events_here(self, row: RunRow, limit: int) -> Sequence[StoredEvent]:
        return await self._service.store.log.events(row.uid, after=Seq(0), limit=limit)


def _is_prefix(uid: RunUid, here: Sequence[StoredEvent], run: CheckedRun) -> bool:
    """Return whether the log of a run in the bundle begins with the log that the run has here."""
    there = run.events[: len(here)]
    both = [hashlib.sha256(log_bytes(uid, events)).digest() for events in (here, there)]
    return len(there) == len(here) and both[0] == both[1]
