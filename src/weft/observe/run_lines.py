"""What a list shows about runs besides their rows: the runs above them, and why they failed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core import events as e
from weft.core.ids import RunUid, Seq
from weft.errors import Failure, StoreError
from weft.ports.store import RunRow
from weft.runtime.service import RunService

ABOVE_MAX = 100
"""How many runs above a run are looked at to find the root."""


class RunLine(msgspec.Struct, frozen=True):
    """A run of a list. ``root`` is the id of the run at the root of its tree, which may be this one."""

    row: RunRow
    parent: str | None
    root: str
    failure: Failure | None


async def read_run_lines(service: RunService, rows: Sequence[RunRow]) -> list[RunLine]:
    """Return what a list shows about runs."""
    known: dict[RunUid, RunRow | None] = {row.uid: row for row in rows}
    return [await _run_line(service, row, known) for row in rows]


async def _run_line(service: RunService, row: RunRow, known: dict[RunUid, RunRow | None]) -> RunLine:
    parent = root = None
    above = row.parent
    for _ in range(ABOVE_MAX):
        if above is None:
            break
        if above not in known:
            known[above] = await service.store.directory.row(above)
        found = known[above]
        if found is None:
            break  # it was deleted
        parent, root, above = parent or found.id, found.id, found.parent
    failure = await _run_failure(service, row) if row.status == "failed" and row.fault is None else None
    return RunLine(row, parent, root or row.id, failure)


async def _run_failure(service: RunService, row: RunRow) -> Failure | None:
    """Return the failure in the last event of a failed run; None if it cannot be read."""
    try:
        stored = await service.store.log.events(row.uid, after=Seq(row.seq - 1), limit=1)
        event = e.decode(stored[-1].body) if stored else None
    except StoreError:
        return None
    return event.failure if isinstance(event, e.RunFailedEvent) else None
