"""A dispatched task without a delivered report, and the check before its body begins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any, Protocol

import msgspec

from weft.core import commands as c
from weft.core.budgets import Amounts
from weft.core.effects import PerformTask
from weft.core.event_parts import Parent
from weft.core.ids import RunUid
from weft.ports.tasks import TaskOffer
from weft.steps.task import StepBody

PRINTED = 1
"""The body has printed or logged something."""
STREAMED = 2
"""The body has written to an output stream."""

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
    root: str = ""
    """The uid of the run at the root of the tree, if that is another run."""
    workflow: str = ""
    """The workflow of the run."""
    caller: Parent | None = None
    """Who asked the agent, if it is the run of one."""
    priority: int = 0
    """Of tasks that wait for a slot, those with a higher priority come first."""
    begun: bool = False
    ended: bool = False
    """Whether the body has ended. The task that ran it may still deliver the report."""
    stopped: bool = False
    output: int = 0
    """What kinds of output the body has written: ``PRINTED``, ``STREAMED`` or both."""
    timer: asyncio.TimerHandle | None = None
    """The timer of the timeout, which every heartbeat restarts. After a cancellation: until it is abandoned."""
    timed_out: bool = False
    reported: Amounts | None = None
    """What the body has reported to have spent."""
    began: float = 0.0
    """When the body of a call with a cover began, on the monotonic clock."""
    chunks: Iterator[int] = msgspec.field(default_factory=count)
    """Numbers for the chunks of output that the body writes, on any thread."""

    def disarm(self) -> None:
        """Cancel the timeout."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class TracesAttempts(Protocol):
    """Makes spans of attempts."""

    def begin(self, flight: Flight, given: bytes) -> Any:
        """Begin the span of an attempt with the input of its body, in the context of that body.

        Returns None if the attempt is not traced.
        """
        ...

    def end(self, flight: Flight, span: Any, output: bytes, error: BaseException | None) -> None:
        """Note that the body has ended."""
        ...


class ConfirmsTasks(Protocol):
    """Confirms before a body begins that the task was not taken over by another host meanwhile."""

    def is_doubtful(self, stalls: int) -> bool:
        """Return whether tasks that were confirmed at this number of stalls may have been taken over since."""
        ...

    async def confirm(self, flight: Flight) -> None:
        """Return once the task is confirmed as this host's own. Otherwise stop the flight and never return."""
        ...
