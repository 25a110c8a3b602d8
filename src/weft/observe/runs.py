"""Read the state of runs: from memory if this process has the run, and otherwise from the store."""

from __future__ import annotations

from weft.core.ids import RunId
from weft.core.machine import Machine
from weft.errors import NotFound, RunUnreadable
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import unreadable_error

RUN_ID_CHARS_MAX = 1_000
"""The longest id of a run. A user may choose 500 characters; tenants and child runs add to them."""


async def read_run(service: RunService, row: RunRow) -> Machine:
    """Return the machine of a run in its committed state. It may be the live one, so it must not be changed.

    From the store, the newest snapshot and the events after it are read. Raises NotFound, RunUnreadable.
    """
    live = live_machine(service, row)
    return live if live is not None else await service.reader.machine(row)


async def split_place(service: RunService, text: str) -> tuple[RunRow, str] | None:
    """Split ``RUN:PLACE``; None if there is no such run.

    Both parts may contain colons, so the longest existing id is used.
    """
    cut = text.rfind(":", 0, RUN_ID_CHARS_MAX + 1)
    while cut > 0:
        row = await service.store.directory.find(RunId(text[:cut]))
        if row is not None:
            return row, text[cut + 1 :]
        cut = text.rfind(":", 0, cut)
    return None


async def try_read_run(service: RunService, row: RunRow) -> tuple[Machine | None, RunUnreadable | None]:
    """Return the machine of a run as ``read_run`` does, or the error if the run cannot be read.

    Both are None for a run that was deleted before it began. Raises NotFound.
    """
    if row.fault is not None:
        return None, unreadable_error(row, row.fault)
    try:
        return await read_run(service, row), None
    except RunUnreadable as problem:
        return None, problem
    except NotFound:
        if row.seq:
            raise
        return None, None


def live_machine(service: RunService, row: RunRow) -> Machine | None:
    """Return the live machine of a run; None if this process does not own the run, or it has uncommitted events."""
    actor = service.local.find(row.uid) if service.local is not None else None
    if actor is None or not actor.ready or actor.epoch != row.epoch:
        return None
    is_committed = row.seq <= actor.committed_seq == actor.machine.state.seq
    return actor.machine if is_committed else None
