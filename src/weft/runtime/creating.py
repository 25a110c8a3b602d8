"""Rows of new runs that nobody here begins yet: whoever comes while a transaction is on its way shares the next one.

One alone is made at once and by itself, so nothing waits for company.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from weft.errors import StoreError
from weft.ports.store import NewRun, Outcome, RunLog

RUNS_PER_BATCH_MAX = 500
_Waiting = tuple[NewRun, "asyncio.Future[Outcome]"]


class Creator:
    """See the module."""

    def __init__(self, runs: RunLog) -> None:
        self._runs = runs
        self._waiting: list[_Waiting] = []
        self._busy = False
        self.answered_at = 0.0
        """When rows were last made, by the loop's clock."""
        self._task: asyncio.Task[None] | None = None

    async def create(self, new: NewRun) -> Outcome:
        """Make the row; an error of the store means *unknown*, as it does for one that is made alone."""
        if self._busy:
            future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            self._waiting.append((new, future))
            return await future
        self._busy = True
        try:
            (outcome,) = await self._runs.create([new])
            self.answered_at = asyncio.get_running_loop().time()
            return outcome
        finally:
            if self._waiting:
                self._task = asyncio.get_running_loop().create_task(self._drain())
            else:
                self._busy = False

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[:RUNS_PER_BATCH_MAX]
                del self._waiting[:RUNS_PER_BATCH_MAX]
                await self._make(batch)
        finally:
            self._busy = False
            # Only if this was stopped: whether their runs will be is for whoever asked to find out.
            for _, future in self._waiting:
                future.cancel()
            self._waiting.clear()

    async def _make(self, batch: Sequence[_Waiting]) -> None:
        try:
            outcomes = await self._runs.create([new for new, _ in batch])
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
            if isinstance(error, StoreError) or len(batch) == 1:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                return
            # One of them cannot be written, and the others are not to blame.
            for one in batch:
                await self._make([one])
            return
        self.answered_at = asyncio.get_running_loop().time()
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
