"""Events of schedules. Import them from ``weft.core.events``.

A nominal time is when a run should start by the schedule's definition. Each nominal time ends as exactly one of fired,
missed or found; one that waits for another run to end is queued first. An event that takes nominal times from the
clock has the one that comes ``next``, so that folding a log needs no calendar.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.event_parts import LogEvent

Overlap = Literal["skip", "queue", "cancel_old", "allow"]
Dst = Literal["run", "skip"]
Why = Literal["late", "overlap", "paused", "queue_full"]
"""Why nominal times were missed."""
UNCHANGED = -1
"""In ``next`` and ``backfill_next``: the event takes no time from there."""


class ScheduleSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The definition of a schedule: what it starts and when. Either ``cron`` or ``every_ms`` is set."""

    workflow: str
    input: Raw
    cron: str = ""
    every_ms: int = 0
    timezone: str = "UTC"
    dst: Dst = "run"
    overlap: Overlap = "skip"
    catch_up_ms: int = 60_000
    """How late a run may start; below zero: any time later."""
    jitter_ms: int = 0
    until: int = 0
    """There are no nominal times after this one. 0: no end."""
    pause_after: int = 0
    """Pause after this many failures in a row. 0: never."""
    priority: int = 0
    """The priority of its runs."""


class ScheduleDeclared(LogEvent, frozen=True, kw_only=True, tag="schedule_declared"):
    """The schedule has this definition from now on. A schedule that was removed runs again."""

    spec: ScheduleSpec
    next: int = 0
    by: str = ""


class ScheduleFired(LogEvent, frozen=True, kw_only=True, tag="schedule_fired"):
    """The schedule started a run, in the same append."""

    nominal: int
    run_id: str
    uid: str
    next: int = UNCHANGED
    backfill_next: int = UNCHANGED
    by: str = ""
    """Who triggered it by hand."""


class ScheduleQueued(LogEvent, frozen=True, kw_only=True, tag="schedule_queued"):
    """A run will start when the runs before it have ended. ``cancels``: uids of runs that are told to stop."""

    nominal: int
    run_id: str
    next: int = UNCHANGED
    cancels: list[str] = []
    by: str = ""


class ScheduleMissed(LogEvent, frozen=True, kw_only=True, tag="schedule_missed"):
    """No run was or will be started for these nominal times."""

    first: int
    last: int
    count: int
    why: Why
    next: int = UNCHANGED
    run_id: str = ""
    """The run that had been queued, if a newer one takes its place."""


class ScheduledRunFound(LogEvent, frozen=True, kw_only=True, tag="scheduled_run_found"):
    """The run of this nominal time exists already, so none was started."""

    nominal: int
    run_id: str
    next: int = UNCHANGED
    backfill_next: int = UNCHANGED


class ScheduledRunEnded(LogEvent, frozen=True, kw_only=True, tag="scheduled_run_ended"):
    """A run that the schedule started has ended."""

    uid: str
    status: str


class BackfillRequested(LogEvent, frozen=True, kw_only=True, tag="backfill_requested"):
    """Runs are to be started for the nominal times from ``first`` to ``last`` that have none."""

    first: int
    last: int
    overlap: Overlap = "queue"
    by: str = ""


class ScheduleCarried(LogEvent, frozen=True, kw_only=True, tag="schedule_carried"):
    """The whole state of the schedule as JSON. The log before the last but one of these is not needed any more."""

    state: Raw
