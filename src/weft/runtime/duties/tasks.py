"""Perform tasks that other hosts offer, and offer those that have no slot here."""

from __future__ import annotations

from weft.runtime.duties.scheduler import RUNS, Wakeups
from weft.runtime.ownership.admission import RunAdmission
from weft.runtime.shared import SharedTasks

PACED_SECONDS = 0.2
"""How often to ask for tasks in queues with a rate limit, where the passing of time allows more tasks."""


class TasksDuty:
    """Takes tasks from the shared queue, and offers tasks to it."""

    def __init__(self, shared: SharedTasks, admission: RunAdmission, wakeups: Wakeups) -> None:
        self._shared = shared
        self._admission = admission
        self._wakeups = wakeups

    async def learn_limits(self) -> None:
        """Read the limits of the queues again, and whether there are other hosts."""
        await self._shared.refresh()

    async def run(self) -> None:
        """Take tasks that other hosts offer, offer tasks that have waited too long, and let waiting runs begin."""
        await self._shared.take()
        self._shared.spill()
        if await self._admission.admit_waiting():
            self._wakeups.wake(RUNS)
        await self._shared.note_turn()

    async def take_paced(self) -> None:
        """Take tasks from queues whose limits allow more as time passes."""
        if self._shared.waits_for_time():
            await self._shared.take()
