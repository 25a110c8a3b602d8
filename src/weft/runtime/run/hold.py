"""Hold a run whose code calls with other arguments than its log has."""

from __future__ import annotations

from typing import Protocol

from weft.core import commands as c
from weft.core.ids import EntryId, RunId, RunUid, Seq
from weft.runtime.run.divergence import other_arguments
from weft.runtime.run.draft import PendingCommand
from weft.runtime.run.ports import RunPorts


class HoldableRun(Protocol):
    """A run whose code asks for something other than its log has."""

    uid: RunUid
    id: RunId
    ports: RunPorts

    def post(self, posted: PendingCommand) -> None: ...


async def hold_other_arguments(run: HoldableRun, location: str, entry: EntryId, asked: bytes, where: str) -> None:
    """Hold a run whose code calls with other arguments than recorded. They are read from the log, to name both."""
    stored = await run.ports.read_event(run.uid, Seq(entry))
    error = other_arguments(run.id, location, stored.body, asked, where)
    run.post(PendingCommand(c.HoldRun(error.code, str(error), location)))  # type: ignore[arg-type]
