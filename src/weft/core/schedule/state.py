"""The state of a schedule: its definition, the next nominal time, and the runs that have not ended."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from weft.core.events import Overlap, ScheduleSpec
from weft.core.run.state import State

NO_SPEC = ScheduleSpec(workflow="", input=Raw(b"{}"))


class StartedRun(msgspec.Struct, omit_defaults=True):
    """A run that the schedule started and that has not ended."""

    run_id: str
    nominal: int
    cancelled: bool = False


class QueuedRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run that starts when those before it have ended."""

    run_id: str
    nominal: int
    by: str = ""


class Backfill(msgspec.Struct, omit_defaults=True):
    """Nominal times whose runs are started later. ``next`` is the earliest moment that is left."""

    next: int
    last: int
    overlap: Overlap = "queue"


class ScheduleState(State, kw_only=True, omit_defaults=True):
    """The state of one schedule. ``schedule_carried`` stores it, so fields are only added, with defaults."""

    spec: ScheduleSpec = NO_SPEC
    next: int = 0
    """The next nominal time; 0: none."""
    open_runs: dict[str, StartedRun] = {}
    """By uid."""
    queued: list[QueuedRun] = []
    backfills: list[Backfill] = []
    paused_until: int = 0
    """Nominal times up to this moment fell into a pause."""
    pause_reason: str = ""
    failures: int = 0
    """Runs in a row that failed."""
    burst: int = 0
    """Runs that were started since the clock last woke the schedule."""
    fired: int = 0
    missed: int = 0
    found: int = 0
    fired_carried: int = 0
    """How many had been fired when the state was last carried forward."""
    last_run: str = ""
    last_nominal: int = 0


_decoder: msgspec.json.Decoder[ScheduleState] = msgspec.json.Decoder(ScheduleState)
encode_state = msgspec.json.Encoder().encode


def restore_state(snapshot: bytes) -> ScheduleState:
    """Restore the state of a schedule from JSON."""
    return _decoder.decode(snapshot)
