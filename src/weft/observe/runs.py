"""Read the state of runs: from memory if this process has the run, and otherwise from the store."""

from __future__ import annotations

from weft.core.decider import Machine
from weft.core.ids import RunId
from weft.errors import NotFound, RunUnreadable
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.runtime.unreadable import unreadable

RUN_ID_CHARS_MAX = 1_000
"""A start may choose 500; tenants and child runs add to that."""


async def read_run(service: RunService, row: RunRow) -> Machine:
    """Return the run as it is committed. It may be the live one: look at it, never change it.

    From the store, the newest snapshot and the events after it are read. Raises NotFound, RunUnreadable.
    """
    live = in_memory(service, row)
    return live if live is not None else await service.reader.machine(row)


async def split_place(service: RunService, text: str) -> tuple[RunRow, str] | None:
    """Split ``RUN:PLACE``; None if there is no such run.

    Both may contain colons, so the longest id that exists is taken.
    """
    cut = text.rfind(":", 0, RUN_ID_CHARS_MAX + 1)
    while cut > 0:
        row = await service.store.directory.find(RunId(text[:cut]))
        if row is not None:
            return row, text[cut + 1 :]
        cut = text.rfind(":", 0, cut)
    return None


async def examine(service: RunService, row: RunRow) -> tuple[Machine | None, RunUnreadable | None]:
    """Return the run as ``read_run`` does, or what keeps it from being read.

    Neither, for a run that had not begun and was deleted. Raises NotFound.
    """
    if row.fault is not None:
        return None, unreadable(row, row.fault)
    try:
        return await read_run(service, row), None
    except RunUnreadable as problem:
        return None, problem
    except NotFound:
        if row.seq:
            raise
        return None, None


def in_memory(service: RunService, row: RunRow) -> Machine | None:
    """Return the live machine of a run; None if it is not here, is no longer ours, or has uncommitted events."""
    actor = service.local.find(row.uid) if service.local is not None else None
    if actor is None or not actor.ready or actor.epoch != row.epoch:
        return None
    is_committed = row.seq <= actor.committed_seq == actor.machine.state.seq
    return actor.machine if is_committed else None
