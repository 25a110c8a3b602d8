"""Runs that no host has taken up: who resolves the name of their workflow, and how they end before they begin.

Rules: docs/internals/engine.md#rule-32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.ids import HostId, Millis, RunUid, Seq
from weft.core.run import lifecycle, messages
from weft.core.run.state import FOLD
from weft.ports.store import Append, KeyRow, Mail, Outcome, RunRow, StoredEvent
from weft.runtime.catalogue import Callee, HostCatalogue
from weft.runtime.library import Library

if TYPE_CHECKING:
    from weft.runtime.service import RunService


async def resolve_name(catalogue: HostCatalogue, library: Library, row: RunRow) -> Callee | None:
    """Return what the name of a workflow means here: what the app registers, or the newest graph of the store."""
    found = catalogue.resolve(row.workflow, row.version)
    if found is not None or row.version:
        return found
    version = await library.newest(row.workflow)
    return Callee(version, "graph") if version is not None else None


async def cancel(service: RunService, row: RunRow, reason: str) -> bool:
    """End a run that nobody has taken up, without a host. False: a host has it by now."""
    if row.owner is not None:
        return False
    host = HostId(f"cancel-{service.ids.new()}")
    if not await service.store.log.claim([row.uid], host, expected={row.uid: row.epoch}):
        return False
    while True:
        loaded = await service.store.log.load(row.uid, fold=FOLD)
        # This claim belongs to nobody who lives, so a host may have taken the run up in between.
        if loaded is None or loaded.row.owner != host:
            return False
        now = Millis(max(service.clock.now_ms(), row.updated_at))
        append = _ending(loaded.row, loaded.inbox, reason, now)
        (outcome,) = await service.store.log.commit([append], host)
        if outcome is not Outcome.MAIL_WAITING:
            return outcome is Outcome.ACCEPTED


def _ending(row: RunRow, inbox: Sequence[Mail], reason: str, now: Millis) -> Append:
    """The whole log of a run that was cancelled before it began; its parent is told."""
    machine = CodeMachine.fresh(row.uid)
    commands = [(c.decode(piece.body), piece) for piece in inbox]
    start = next(command for command, _ in commands if isinstance(command, c.StartRun))
    decided = [*lifecycle.decide_start(machine.state, msgspec.structs.replace(start, run_id=row.id, refused=""), now)]
    keys: list[KeyRow] = []
    for command, piece in commands:
        # Messages were accepted, so they are in its log, as they would be if it had begun.
        if isinstance(command, c.DeliverMessage):
            decided += messages.decide_message(machine.state, command)
            if piece.key is not None:
                keys.append(KeyRow(piece.key, piece.digest, Seq(len(decided))))
    decided += [e.CancelRequested(reason=reason), e.RunCancelled(reason=reason, never_begun=True)]
    events: list[StoredEvent] = []
    mail: list[Mail] = []
    for event in decided:
        machine.evolve(event, at=now)
        events.append(StoredEvent(Seq(machine.state.seq), now, e.encode(event)))
        for letter in machine.mail(event):
            body = c.encode(letter.command)
            mail.append(Mail(id=f"{row.uid}/{machine.state.seq}", to=RunUid(letter.to), body=body, at=now))
    return Append(
        uid=row.uid,
        epoch=row.epoch,
        seq=row.seq,
        events=events,
        status="cancelled",
        mail_taken=row.mail,
        taken=[piece.id for piece in inbox],
        keys=keys,
        mail=mail,
    )
