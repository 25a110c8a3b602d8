"""Keep memory within its limit by releasing runs that have been idle for long, or whose version is not here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from weft.ports.clock import Clock
from weft.runtime.duties.scheduler import RUNS, Wakeups
from weft.runtime.ownership.release import Releaser
from weft.runtime.run.actor import Actor
from weft.runtime.runs import RunTable

RELEASES_PER_ROUND = 100
SCANNED_PER_TURN = 250
"""How many runs are looked at in one turn of the loop: thousands take longer than others should wait."""


class ReleaseDuty:
    """Releases idle runs. Above the limit, the runs that have been idle longest leave at once."""

    def __init__(
        self,
        runs: RunTable,
        releaser: Releaser,
        clock: Clock,
        wakeups: Wakeups,
        *,
        idle_seconds: float,
        wanted: Callable[[], int],
    ) -> None:
        """``wanted`` returns how many runs wait for room in memory."""
        self._runs = runs
        self._releaser = releaser
        self._clock = clock
        self._wakeups = wakeups
        self._idle_seconds = idle_seconds
        self._wanted = wanted

    async def run(self) -> None:
        wanted = self._wanted()
        actors = self._runs.actors
        surplus = self._runs.surplus() + wanted
        limit = self._clock.monotonic() - self._idle_seconds
        misplaced = self._runs.misplaced
        if surplus <= 0 and not misplaced and (not actors or next(iter(actors.values())).idle_since > limit):
            return
        idle: list[Actor] = []
        present = list(actors.values())
        for start in range(0, len(present), SCANNED_PER_TURN):
            idle += [actor for actor in present[start : start + SCANNED_PER_TURN] if self._releaser.may_leave(actor)]
            await asyncio.sleep(0)
        idle.sort(key=lambda actor: actor.idle_since)
        leaving = [
            actor for i, actor in enumerate(idle) if i < surplus or actor.idle_since <= limit or actor.uid in misplaced
        ]
        for start in range(0, len(leaving), RELEASES_PER_ROUND):
            await self._releaser.release(leaving[start : start + RELEASES_PER_ROUND])
            await asyncio.sleep(0)
        if wanted and leaving:
            self._wakeups.wake(RUNS)
