"""Confirm that this host still owns a task before its body begins, after the host was blocked."""

from __future__ import annotations

import asyncio

from weft.core.ids import HostId
from weft.ports.store import Directory
from weft.runtime.duties.heartbeat import Heartbeat
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.runs import RunTable
from weft.runtime.shared import SharedTasks
from weft.runtime.worker.flight import Flight
from weft.runtime.worker.step_worker import StepWorker


class TaskGuard:
    """Stops tasks that other hosts have taken over. Implements ``ConfirmsTasks``."""

    def __init__(
        self,
        heartbeat: Heartbeat,
        runs: RunTable,
        directory: Directory,
        host: HostId,
        *,
        worker: StepWorker,
        shared: SharedTasks,
        retry: RetryUntilAvailable,
    ) -> None:
        self._runs = runs
        self._directory = directory
        self._host = host
        self._worker = worker
        self._shared = shared
        self._retry_until_available = retry
        self.is_doubtful = heartbeat.is_doubtful

    async def confirm(self, flight: Flight) -> None:
        """Stop the flight if this host no longer owns its task."""
        if flight.offer is not None:
            await self._retry_until_available(self._shared.renew)
        else:
            row = await self._retry_until_available(lambda: self._directory.row(flight.uid))
            actor = self._runs.actors.get(flight.uid)
            if row is None or row.owner != self._host or (actor is not None and actor.epoch != row.epoch):
                self._worker.stop(flight.uid, flight.effect.task)
        # A stopped flight is cancelled at its next wait, which is here.
        await asyncio.sleep(0)
