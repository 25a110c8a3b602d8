"""Runs of which something stored cannot be read: how that is told, and how such a run goes on or ends.

A host that meets one marks the run's row with a fault. Whoever asks about a run without a host finds the damage by
reading. In both cases commands are refused, for nobody could act on them, but two: ``resume`` looks again, and
``cancel --force`` ends the run by its row alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weft.cache import BoundedCache
from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import EntryId, HostId, Millis, RunUid, Seq
from weft.errors import Corrupt, NotFound, Refused, RunUnreadable
from weft.ports.store import PENDING, Append, Mail, Outcome, RunQuery, RunRow, StoredEvent
from weft.runtime.duties.scheduler import MAIL, RUNS

if TYPE_CHECKING:
    from weft.runtime.service import RunService

NOT_UNDONE = "What is stored of it cannot be read, so nothing that it did was undone."
CHECKED_MAX = 10_000


def unreadable(row: RunRow, why: str) -> RunUnreadable:
    """The error about a run, with what can be done about it."""
    hint = "Restore the store from a backup."
    if row.ended_at is None:
        hint = (
            f"Restore the store from a backup, or update Weft if a newer one wrote it; then: weft resume {row.id}. "
            f"To end the run without undoing anything: weft cancel {row.id} --force"
        )
    return RunUnreadable(f"{row.id} cannot be read: {why}", hint=hint, run_id=row.id, why=why)


def definition_gone(row: RunRow) -> RunUnreadable:
    """The error about a graph run whose graph is not in the store any more."""
    waits = f"version {row.version} of {row.workflow}, which is not in the store"
    hint = "Run the program that registers this version, or: weft serve app.py. That stores it again."
    if row.ended_at is None:
        hint += f" To end the run without undoing anything: weft cancel {row.id} --force"
    why = f"it waits for {waits}."
    return RunUnreadable(f"{row.id} cannot be read: {why}", hint=hint, run_id=row.id, why=why, waits=waits)


@contextlib.contextmanager
def reading(row: RunRow) -> Iterator[None]:
    """Name the run in the error about something of it that cannot be read."""
    try:
        yield
    except RunUnreadable:
        raise
    except Corrupt as error:
        raise unreadable(row, error.message) from error


async def problem_of(service: RunService, row: RunRow) -> RunUnreadable | None:
    """Why the run cannot be read, if that is so."""
    if row.fault is not None:
        return unreadable(row, row.fault)
    try:
        await service.machine(row)
    except RunUnreadable as error:
        return error
    except NotFound:
        return None
    return None


async def readable(
    service: RunService, row: RunRow, *, after: int, limit: int
) -> tuple[Sequence[StoredEvent], RunUnreadable | None]:
    """A page of the log as far as it can be read, and what is wrong with the event after that."""
    problem: RunUnreadable | None = None
    try:
        page = list(await service.store.log.events(row.uid, after=Seq(after), limit=limit))
    except Corrupt as error:
        problem = unreadable(row, error.message)
        bad = error.context.get("seq")
        left = bad - after - 1 if isinstance(bad, int) else 0
        page = list(await service.store.log.events(row.uid, after=Seq(after), limit=left)) if left > 0 else []
    for number, stored in enumerate(page):
        try:
            e.decode(stored.body)
        except Corrupt as error:
            return page[:number], unreadable(row, f"Event {stored.seq}: {error.message}")
    return page, problem


class Readability:
    """Whether commands to runs that are not in memory here would be read by somebody."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._checked: BoundedCache[RunUid, int] = BoundedCache(CHECKED_MAX)
        """Runs that were looked at, and in which epoch: once in each is enough."""

    async def problem(self, row: RunRow) -> RunUnreadable | None:
        """Why nobody could act on a command to this run. One that a host has loaded can be read."""
        if row.fault is None and self._checked.get(row.uid) == row.epoch:
            return None
        if row.fault is None and row.owner is not None:
            found = None
        else:
            found = await problem_of(self._service, row)
        if found is None:
            self._checked.put(row.uid, row.epoch)
        return found

    async def is_done(self, row: RunRow, command: c.Mailed) -> bool:
        """Whether a command to a run that cannot be read was carried out here. Raises RunUnreadable if it cannot be."""
        problem = await self.problem(row)
        if problem is None:
            return False
        if isinstance(command, c.CancelRun) and command.force:
            await end_by_row(self._service, row, command.reason, str(problem.context["why"]))
            return True
        if row.fault is None or not isinstance(command, c.ResumeRun):
            raise problem
        status = await look_again(self._service, row)
        if status in ("paused", "held"):
            await self._service.tell(row.id, command)
        elif self._service.local is not None:
            self._service.local.wakeups.wake(MAIL, RUNS)
        return True


async def look_again(service: RunService, row: RunRow) -> str:
    """Let a run with a fault go on if it can be read now: its status. Raises RunUnreadable."""
    machine = await service.machine(row)
    status = machine.state.status if row.seq else PENDING
    # The claim belongs to nobody who lives, so a host takes the run over as that of a dead one.
    host = HostId(f"resume-{service.ids.new()}")
    await service.store.log.claim([row.uid], host, expected={row.uid: row.epoch})
    await service.store.log.mark_fault(row.uid, None, status=status)
    return status


async def end_by_row(service: RunService, row: RunRow, reason: str, why: str) -> None:
    """Cancel a run that cannot be read. Nothing is undone; child runs are told to stop, and its parent is told."""
    # Also keeps hosts from taking it up meanwhile.
    await service.store.log.mark_fault(row.uid, row.fault or why)
    host = HostId(f"cancel-{service.ids.new()}")
    while True:
        now = await service.store.directory.row(row.uid)
        if now is None or now.ended_at is not None:
            break
        for claimed in await service.store.log.claim([now.uid], host, expected={now.uid: now.epoch}):
            (outcome,) = await service.store.log.commit([await _ending(service, claimed, reason)], host)
            if outcome is Outcome.ACCEPTED:
                break
    offers = await service.store.tasks.rows(row.uid)
    await service.store.tasks.withdraw(row.uid, [offer.task for offer in offers])
    await _stop_children(service, row, reason)


async def _ending(service: RunService, row: RunRow, reason: str) -> Append:
    at = Millis(max(service.clock.now_ms(), row.updated_at))
    seq = Seq(row.seq + 1)
    entry = await _place_in_parent(service, row)
    report = c.ReportChildEnded(child=EntryId(entry), status="cancelled")
    parent = [Mail(id=f"{row.uid}/{seq}", to=row.parent, body=c.encode(report), at=at)] if row.parent and entry else []
    return Append(
        uid=row.uid,
        epoch=row.epoch,
        seq=row.seq,
        events=[StoredEvent(seq, at, e.encode(e.RunCancelled(reason=reason)))],
        status="cancelled",
        mail_taken=row.mail,
        mail=parent,
    )


async def _place_in_parent(service: RunService, row: RunRow) -> int:
    """Where the parent waits for this run; 0: nobody waits."""
    parent = await service.store.directory.row(row.parent) if row.parent is not None else None
    if parent is None or parent.ended_at is not None:
        return 0
    with contextlib.suppress(RunUnreadable, NotFound):
        children = (await service.state(parent)).children
        return next((number for number, child in children.items() if child.uid == row.uid), 0)
    return 0


async def _stop_children(service: RunService, row: RunRow, reason: str) -> None:
    after: str | None = None
    while True:
        page = await service.search(RunQuery(parent=row.uid, after=after))
        for child in page.rows:
            if child.ended_at is not None:
                continue
            with contextlib.suppress(Refused):
                try:
                    await service.tell(child.id, c.CancelRun(reason))
                except RunUnreadable:
                    await service.tell(child.id, c.CancelRun(reason, force=True))
        after = page.cursor
        if after is None:
            return
