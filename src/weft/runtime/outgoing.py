"""What one run tells others in its own commit, and the report of a divergence, which must read the log first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.effects import OutgoingMail
from weft.core.ids import EntryId, RunId, RunUid, Seq
from weft.core.run.tree import root_of
from weft.ports.store import Mail, NewRun
from weft.runtime.code_driver import diverged
from weft.runtime.draft import Draft, Posted
from weft.runtime.shown import added_arguments, call_shown

if TYPE_CHECKING:
    from weft.runtime.actor import Actor


def enclose(actor: Actor, draft: Draft, letter: OutgoingMail) -> None:
    """Put a command to another run, or the start of a child, into an append."""
    body = c.encode(letter.command)
    if letter.create and isinstance(letter.command, c.StartRun):
        start = letter.command
        hosted = actor.ports.program(start.workflow, start.version) is not None
        new = NewRun(
            uid=RunUid(letter.to),
            id=RunId(start.run_id),
            workflow=start.workflow,
            version=start.version,
            style=start.style,
            created_at=actor.now_ms,
            parent=actor.uid,
            start=body,
            attributes=start.attributes,
            owner=actor.ports.host if hosted else None,
        )
        draft.children.append(new)
        actor.ports.on_child(root_of(actor.machine.state), new.uid)
        return
    mail_id = f"{actor.uid}/{actor.machine.state.seq}"
    draft.mail.append(Mail(id=mail_id, to=RunUid(letter.to), body=body, at=actor.now_ms))


def _item_of_a_map(actor: Actor, location: str) -> str:
    """If the place is in an item of a map, say so: it may be the items that have changed."""
    machine = actor.machine
    assert isinstance(machine, CodeMachine), "only code asks with arguments"
    parts = location.split("/")
    for place in range(len(parts) - 1, 0, -1):
        around = "/".join(parts[:place])
        entry = machine.lookup(around) if parts[place].startswith("~") else None
        if entry is not None and entry.kind == "map":
            return f" (item {parts[place][1:]} of the map `{around}`, which may go over other items now)"
    return ""


async def hold_other_input(actor: Actor, location: str, entry: EntryId, asked: bytes) -> None:
    """Hold a run whose code asks with other arguments than the log has: both are named."""
    stored = await actor.ports.read_event(actor.uid, Seq(entry))
    recorded = getattr(e.decode(stored.body), "input", e.NULL)
    there = f"a recorded result for {call_shown('', bytes(recorded))}"
    new = ", ".join(added_arguments(bytes(recorded), asked))
    error = diverged(actor.id, location, there, f"{call_shown('', asked)}{_item_of_a_map(actor, location)}", new)
    actor.post(Posted(c.HoldRun(error.code, str(error), location)))  # type: ignore[arg-type]
