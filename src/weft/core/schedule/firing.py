"""Decide what becomes of nominal times: fired, queued, missed or found. Nothing here changes the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from weft.core import events as e
from weft.core.ids import child_uid
from weft.core.run.env import Env, MissingInputs
from weft.core.schedule.calendar import Calendar, run_id_of, run_label, schedule_name, start_at
from weft.core.schedule.state import Backfill, ScheduleState
from weft.errors import Refused

BURST_MAX = 100
"""The most runs that are started at once. The others start in the next turn."""
QUEUED_MAX = 100
MISSED_MAX = 5_000
"""The most nominal times in one event, so that a decision after a long outage stays short."""


class Firing:
    """The decisions of one schedule about its nominal times."""

    def __init__(self, calendar: Calendar, state: ScheduleState) -> None:
        self._calendar = calendar
        self._state = state

    # --- times ----------------------------------------------------------------------------------------------------

    def next_after(self, spec: e.ScheduleSpec, moment: int) -> int:
        """Return the first nominal time after a moment; 0: there is none."""
        return next(self._calendar.times(spec, moment), 0)

    def start_at(self, nominal: int) -> int:
        """Return when the run of a nominal time starts."""
        return start_at(schedule_name(self._state.run_id), self._state.spec, nominal)

    def _pending_times(self) -> Iterator[int]:
        """Yield the nominal times that are left, beginning with the next one."""
        state = self._state
        yield state.next
        yield from self._calendar.times(state.spec, state.next)

    # --- what follows by itself -----------------------------------------------------------------------------------

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        """Return what becomes of the oldest run or nominal time that is left. Raises MissingInputs."""
        state = self._state
        if state.burst >= BURST_MAX:
            return ()  # the clock wakes the schedule again
        if state.queued and not (state.open_runs and state.spec.overlap != "allow"):
            oldest = state.queued[0]
            return self._start_run(oldest.nominal, oldest.run_id, env, by=oldest.by)
        if state.next and state.next <= state.paused_until:
            return self._note_missed(
                takewhile(lambda nominal: nominal <= state.paused_until, self._pending_times()), "paused"
            )
        if state.next and self.start_at(state.next) <= env.now:
            return self._decide_next_time(env)
        return self._backfill_next(state.backfills[0], env) if state.backfills else ()

    def _decide_next_time(self, env: Env) -> Sequence[e.AnyEvent]:
        """Decide about the next nominal time, which is due."""
        state, spec = self._state, self._state.spec
        if spec.catch_up_ms >= 0:
            too_late = env.now - spec.catch_up_ms
            if self.start_at(state.next) < too_late:
                late = takewhile(lambda nominal: self.start_at(nominal) < too_late, self._pending_times())
                return self._note_missed(late, "late")
        due = takewhile(lambda nominal: self.start_at(nominal) <= env.now, self._pending_times())
        if spec.overlap == "cancel_old":
            # Only the newest is started.
            older = list(islice(due, MISSED_MAX + 1))[:-1]
            if older:
                return self._note_missed(iter(older), "overlap")
        if spec.overlap == "allow" or not self._is_busy():
            return self._start_run(state.next, self._run_id(state.next), env, following=True)
        if spec.overlap == "skip":
            return self._note_missed(due, "overlap")
        if spec.overlap == "queue" and len(state.queued) >= QUEUED_MAX:
            return self._note_missed(due, "queue_full")
        following = self.next_after(spec, state.next)
        return self._queue_run(state.next, self._run_id(state.next), following)

    def _is_busy(self) -> bool:
        return bool(self._state.open_runs or self._state.queued)

    def _run_id(self, nominal: int) -> str:
        return run_id_of(self._state.run_id, run_label(nominal))

    def _note_missed(self, nominals: Iterator[int], why: e.Why) -> Sequence[e.AnyEvent]:
        first = last = count = 0
        for nominal in islice(nominals, MISSED_MAX):
            first, last, count = first or nominal, nominal, count + 1
        following = self.next_after(self._state.spec, last)
        return (e.ScheduleMissed(first=first, last=last, count=count, why=why, next=following),)

    def _start_run(
        self, nominal: int, run_id: str, env: Env, *, following: bool = False, by: str = ""
    ) -> Sequence[e.AnyEvent]:
        """Start the run of a nominal time, unless it exists. ``following``: the time is taken from the clock."""
        state = self._state
        after = self.next_after(state.spec, nominal) if following else e.UNCHANGED
        if self._run_exists(run_id, env):
            return (e.ScheduledRunFound(nominal=nominal, run_id=run_id, next=after),)
        return (self._fired_event(nominal, run_id, next=after, by=by),)

    def _fired_event(
        self, nominal: int, run_id: str, *, next: int = e.UNCHANGED, backfill_next: int = e.UNCHANGED, by: str = ""
    ) -> e.ScheduleFired:
        uid = child_uid(self._state.uid, self._state.seq + 1)
        return e.ScheduleFired(nominal=nominal, run_id=run_id, uid=uid, next=next, backfill_next=backfill_next, by=by)

    def _run_exists(self, run_id: str, env: Env) -> bool:
        """Return whether there is such a run: one that was started here and is perhaps not durable, or in the store."""
        if any(run.run_id == run_id for run in self._state.open_runs.values()):
            return True
        known = env.run_exists(run_id)
        if known is None:
            raise MissingInputs(runs=[run_id])
        return known

    def _queue_run(self, nominal: int, run_id: str, following: int, by: str = "") -> Sequence[e.AnyEvent]:
        """Let a run wait for those before it. With ``cancel_old``, these are told to stop and it takes their place."""
        state = self._state
        if state.spec.overlap != "cancel_old":
            return (e.ScheduleQueued(nominal=nominal, run_id=run_id, next=following, by=by),)
        replaced = [
            e.ScheduleMissed(first=old.nominal, last=old.nominal, count=1, why="overlap", run_id=old.run_id)
            for old in state.queued
        ]
        cancels = [uid for uid, run in state.open_runs.items() if not run.cancelled]
        queued = e.ScheduleQueued(nominal=nominal, run_id=run_id, next=following, cancels=cancels, by=by)
        return (*replaced, queued)

    def _backfill_next(self, wanted: Backfill, env: Env) -> Sequence[e.AnyEvent]:
        """Start the run of the next nominal time of a backfill."""
        state = self._state
        if wanted.overlap != "allow" and self._is_busy():
            return ()
        nominal = self.next_after(state.spec, wanted.next - 1)
        if not nominal or nominal > wanted.last:
            return ()
        following = self.next_after(state.spec, nominal)
        run_id = self._run_id(nominal)
        if self._run_exists(run_id, env):
            return (e.ScheduledRunFound(nominal=nominal, run_id=run_id, backfill_next=following),)
        return (self._fired_event(nominal, run_id, backfill_next=following),)

    # --- by hand --------------------------------------------------------------------------------------------------

    def trigger(self, label: str, by: str, env: Env) -> Sequence[e.AnyEvent]:
        """Start a run now. Raises Refused if the schedule's overlap does not allow it."""
        state = self._state
        run_id = run_id_of(state.run_id, label)
        if state.spec.overlap == "allow" or not self._is_busy():
            return (self._fired_event(env.now, run_id, by=by),)
        if state.spec.overlap == "skip" or len(state.queued) >= QUEUED_MAX:
            busy = next((run.run_id for run in state.open_runs.values()), "") or state.queued[0].run_id
            raise Refused(
                f"{schedule_name(state.run_id)} starts no run while {busy} is open (overlap: {state.spec.overlap}).",
                hint=f"Wait for it, or: weft cancel {busy}",
                code="schedule.overlap",
            )
        return self._queue_run(env.now, run_id, e.UNCHANGED, by)

    def backfill(self, first: int, last: int, overlap: e.Overlap, by: str) -> Sequence[e.AnyEvent]:
        """Note the nominal times whose runs are wanted. Returns no event if there are none."""
        earliest = self.next_after(self._state.spec, first - 1)
        if not earliest or earliest > last:
            return ()
        return (e.BackfillRequested(first=earliest, last=last, overlap=overlap, by=by),)
