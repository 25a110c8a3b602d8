"""A task that was dispatched and has not been answered for, and what is asked before it begins."""

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
from weft.steps.base import StepBody

Report = c.ReportTaskSucceeded | c.ReportTaskFailed | c.ReportWorkAccepted


class Flight(msgspec.Struct, eq=False):
    """One attempt at a task, until its report was taken."""

    uid: RunUid
    run_id: str
    effect: PerformTask
    body: StepBody | None
    offer: TaskOffer | None = None
    """Set if it was taken from the shared queue: its report goes to another host's run."""
    running: asyncio.Task[None] | None = None
    stalls: int = 0
    """How often this host had stood still when the store last said that this is its own."""
    since: float = 0.0
    """When it was handed out, on the monotonic clock."""
    begun: bool = False
    stopped: bool = False
    emitted: bool = False
    timer: asyncio.TimerHandle | None = None
    """When its timeout cancels it; every heartbeat of the body moves it. Afterwards: when it is abandoned."""
    timed_out: bool = False
    chunks: Iterator[int] = msgspec.field(default_factory=count)
    """Numbers for the chunks of output that its body writes, on whichever threads."""

    def disarm(self) -> None:
        """Cancel the timeout."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class ConfirmsTasks(Protocol):
    """Asked before a body begins: its host may have been away so long that others perform it by now."""

    def is_doubtful(self, stalls: int) -> bool:
        """Whether what was its own after so many standstills may be in other hands by now."""
        ...

    async def confirm(self, flight: Flight) -> None:
        """Return when it is known to be in ours. If it is not, this never returns: the flight is stopped."""
        ...
