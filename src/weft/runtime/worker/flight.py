"""A dispatched task without a delivered report, and the check before its body begins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Protocol

import msgspec

from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.ids import RunUid
from weft.ports.store import TaskOffer
from weft.steps.task import StepBody

Report = c.ReportTaskSucceeded | c.ReportTaskFailed | c.ReportWorkAccepted


class Flight(msgspec.Struct, eq=False):
    """One attempt at a task, until its report is delivered."""

    uid: RunUid
    run_id: str
    effect: PerformTask
    body: StepBody | None
    offer: TaskOffer | None = None
    """Set if the task was taken from the shared queue: its report goes to a run on another host."""
    running: asyncio.Task[None] | None = None
    stalls: int = 0
    """The number of stalls of this host when the store last confirmed that the task is its own."""
    since: float = 0.0
    """When the task was dispatched, on the monotonic clock."""
    begun: bool = False
    ended: bool = False
    """Whether the body has ended. The task that ran it may still deliver the report."""
    stopped: bool = False
    emitted: bool = False
    timer: asyncio.TimerHandle | None = None
    """The timer of the timeout, which every heartbeat restarts. After a cancellation: until it is abandoned."""
    timed_out: bool = False
    chunks: Iterator[int] = msgspec.field(default_factory=count)
    """Numbers for the chunks of output that the body writes, on any thread."""

    def disarm(self) -> None:
        """Cancel the timeout."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class ConfirmsTasks(Protocol):
    """Confirms before a body begins that the task was not taken over by another host meanwhile."""

    def is_doubtful(self, stalls: int) -> bool:
        """Return whether tasks that were confirmed at this number of stalls may have been taken over since."""
        ...

    async def confirm(self, flight: Flight) -> None:
        """Return once the task is confirmed as this host's own. Otherwise stop the flight and never return."""
        ...
