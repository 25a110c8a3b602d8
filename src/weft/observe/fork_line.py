"""The family of a run: its original, if it is a fork, and its forks."""

from __future__ import annotations

import msgspec

from weft.core.ids import RunUid
from weft.ports.store import RunRow
from weft.runtime.forks import ForkService
from weft.runtime.service import RunService

FORKS_MAX = 20


class ForkLine(msgspec.Struct, frozen=True, kw_only=True):
    """The original of a run (None if it is no fork), and the ids of its newest forks."""

    original: str | None = None
    seq: int = 0
    """The number of the last event that it shares with the original."""
    forks: list[str] = []


async def read_fork_line(service: RunService, row: RunRow) -> ForkLine:
    """Return the original and the forks of a run."""
    forks = ForkService(service)
    newest: list[str] = [one.id for one in await forks.forks(row, limit=FORKS_MAX)]
    origin = await forks.original(row)
    if origin is None:
        return ForkLine(forks=newest)
    there = await service.store.directory.row(RunUid(origin.uid))
    return ForkLine(original=there.id if there is not None else origin.run, seq=origin.seq, forks=newest)
