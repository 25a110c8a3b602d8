"""What only the views of schedules show: the next nominal time and the runs that were started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from weft.core import events as e
from weft.core.plurals import pluralize
from weft.core.schedule.calendar import STORED, schedule_name
from weft.core.schedule.machine import ScheduleMachine
from weft.observe.diagnosis import Diagnosis, PendingWait, ScheduleStanding
from weft.observe.explanation import ExplainedLine, StyleSentences
from weft.observe.operations import Keep, NoteChange, Operation, StyleOperations, end
from weft.observe.style_views import Held, StyleViews
from weft.observe.task_wait import timer_wait
from weft.ports.store import RunRow, StoredEvent
from weft.runtime.service import RunService


class ScheduleViews(StyleViews[ScheduleMachine]):
    """The views of schedules."""

    has_nodes = False
    path_heading = "its runs"

    def waits(self, machine: ScheduleMachine, now: int) -> Iterator[PendingWait]:
        """Yield the time of the next run."""
        for number, due in machine.state.timers.items():
            yield timer_wait(machine, "sleep", number, due)

    def held(self, machine: ScheduleMachine) -> Held:
        """Return the definition of the schedule."""
        return {"schedule": {"": msgspec.json.encode(machine.state.spec)}}

    async def details(self, service: RunService, row: RunRow, machine: ScheduleMachine) -> dict[str, Any]:
        """Return what became of nominal times so far: fields of the diagnosis."""
        state = machine.state
        standing = ScheduleStanding(
            fired=state.fired,
            missed=state.missed,
            found=state.found,
            pause_reason=state.pause_reason,
            open_runs=[run.run_id for run in state.open_runs.values()],
            queued=len(state.queued),
            backfills=len(state.backfills),
        )
        return {"schedule": standing}

    def sentences(self, diagnosis: Diagnosis) -> StyleSentences:
        """Say which runs are open, and what became of nominal times."""
        standing = diagnosis.schedule
        if standing is None:
            return StyleSentences()
        lines = [f"{standing.fired:,} fired, {standing.missed:,} missed, {standing.found:,} found"]
        if standing.pause_reason:
            lines.append(f"paused: {standing.pause_reason}")
        lines += [f"{run} is open" for run in standing.open_runs]
        if standing.queued:
            lines.append(f"{pluralize(standing.queued, 'run')} will start when others have ended")
        if standing.backfills:
            lines.append(f"{pluralize(standing.backfills, 'backfill')} to do")
        return StyleSentences(path=[ExplainedLine(text=line) for line in lines])

    def operations(self, operations: dict[int, Operation], keep: Keep, note_change: NoteChange) -> StyleOperations:
        """Return the runs that a schedule started."""
        return ScheduleOperations(keep)

    async def is_stored(self, service: RunService, row: RunRow) -> bool:
        """Return whether every host can run it: it was not declared in code."""
        return row.version == STORED

    def version_advice(self, version: str) -> str:
        """Say what helps a schedule that no host declares."""
        return "Its declaration is not in the code of any host. Declare it again, or: weft schedule remove NAME"


class ScheduleOperations:
    """The runs that a schedule started, and the times that it missed."""

    handles: frozenset[type] = frozenset((e.ScheduleFired, e.ScheduledRunEnded, e.ScheduleMissed))

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._runs: dict[str, Operation] = {}

    def apply(self, event: Any, stored: StoredEvent) -> Operation | None:
        """Apply an event of a schedule."""
        match event:
            case e.ScheduleFired(run_id=run_id, uid=uid):
                started = Operation(stored.seq, schedule_name(run_id), "child", run_id, stored.at, child=run_id)
                self._runs[uid] = started
                return self._keep(started)
            case e.ScheduledRunEnded(uid=uid, status=status) if uid in self._runs:
                ended = self._runs.pop(uid)
                end(ended, "done" if status == "completed" else status, stored.at)
                return ended
            case e.ScheduleMissed(count=count, why=why):
                place = f"missed#{stored.seq}"
                missed = Operation(stored.seq, place, "missed", pluralize(count, "time"), stored.at, why=why)
                end(missed, "skipped", stored.at)
                return self._keep(missed)
        return None

    def reopen(self, steps: Sequence[str]) -> list[int]:
        return []
