"""Mail to other runs, sent in a run's own commit."""

from __future__ import annotations

from typing import Protocol

from weft.core import commands as c
from weft.core.effects import OutgoingMail
from weft.core.ids import Millis, RunId, RunUid
from weft.core.machine import Machine
from weft.core.run.children import root_of
from weft.ports.new_run import NewRun
from weft.ports.store import Mail
from weft.runtime.run.draft import Draft
from weft.runtime.run.ports import RunPorts


class SendingRun(Protocol):
    """A run that sends mail."""

    uid: RunUid
    machine: Machine
    now_ms: Millis
    ports: RunPorts


def add_mail(run: SendingRun, draft: Draft, letter: OutgoingMail) -> None:
    """Add outgoing mail to a draft: a command for another run, or the start of a new one."""
    body = c.encode(letter.command)
    if letter.create and isinstance(letter.command, c.StartRun):
        start = letter.command
        hosted = run.ports.program(start.workflow, start.version) is not None
        new = NewRun(
            uid=RunUid(letter.to),
            id=RunId(start.run_id),
            workflow=start.workflow,
            version=start.version,
            style=start.style,
            created_at=run.now_ms,
            parent=run.uid if start.parent is not None else None,
            start=body,
            attributes=start.attributes,
            owner=run.ports.host if hosted else None,
            priority=start.priority,
        )
        draft.children += (new,)
        if start.parent is not None:
            run.ports.on_child(root_of(run.machine.state), new.uid)
        return
    mail_id = f"{run.uid}/{run.machine.state.seq}"
    draft.mail += (Mail(id=mail_id, to=RunUid(letter.to), body=body, at=run.now_ms),)
