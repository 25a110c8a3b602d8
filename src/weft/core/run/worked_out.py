"""A patch that was worked out on a copy of its run, and is handed over with the command. Pure.

If the run has recorded nothing since, it takes the event as it is. Otherwise the patch is outdated, and is worked out
again.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.commands import PatchRun
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.state import State
from weft.core.run.style import JudgedPatch


class WorkedOut(msgspec.Struct, frozen=True):
    """A plan and its event, and the number of the last event of the run on which they are based."""

    seq: int
    plan: PatchPlan
    event: Raw


_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[WorkedOut] = msgspec.json.Decoder(WorkedOut)


def hand_over(judged: JudgedPatch, seq: int) -> Raw:
    """Return what a command carries of a patch that may be applied."""
    assert judged.event is not None
    return Raw(_encode(WorkedOut(seq, judged.plan, Raw(e.encode(judged.event)))))


def handed_over_patch(command: PatchRun, state: State) -> JudgedPatch | None:
    """Return the patch that was handed over with a command; None if it is to be worked out here."""
    if not bytes(command.worked_out):
        return None
    found = _decoder.decode(command.worked_out)
    if found.seq != state.seq:
        return JudgedPatch(found.plan, is_outdated=True)
    event = e.decode(bytes(found.event))
    assert isinstance(event, e.RunPatched)
    return JudgedPatch(found.plan, event)
