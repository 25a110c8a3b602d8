"""Tell callers here that a run has ended on another host."""

from __future__ import annotations

from weft.ports.store import Directory
from weft.runtime.runs import RunTable


class EndsDuty:
    """Checks whether the runs that callers in this process wait for have ended."""

    def __init__(self, runs: RunTable, directory: Directory) -> None:
        self._runs = runs
        self._directory = directory

    async def run(self) -> None:
        """Check every awaited run once."""
        for uid in self._runs.awaited():
            if uid in self._runs.actors:
                continue
            row = await self._directory.row(uid)
            if row is None or row.ended_at is not None:
                self._runs.on_ended(uid)
