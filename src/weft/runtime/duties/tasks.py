"""Perform tasks that other hosts offer, and offer those that have no slot here."""

from __future__ import annotations

from weft.runtime.shared import SharedTasks

PACED_SECONDS = 0.2
"""How often to ask for tasks of queues with a rate: nobody announces that time has passed."""


class TasksDuty:
    """Takes tasks from the shared queue and gives some to it."""

    def __init__(self, shared: SharedTasks) -> None:
        self._shared = shared

    async def learn_limits(self) -> None:
        """Read again what the queues allow, and whether other hosts are there."""
        await self._shared.refresh()

    async def run(self) -> None:
        """Take what others offer, and offer what has waited too long."""
        await self._shared.take()
        self._shared.spill()

    async def take_paced(self) -> None:
        """Take tasks of queues whose limits allow more as time passes."""
        if self._shared.waits_for_time():
            await self._shared.take()
