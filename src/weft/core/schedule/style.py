"""The style of schedules: a clock, and a run for each nominal time.

A schedule has one timer. When it is due, the nominal times up to now are decided one after the other, oldest first,
each in one event. The start of a run is mail in the append of that event, so a nominal time has one run, whatever
crashes in between. The runs are not children: they have no parent, and report only that they have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import AnyEffect, ArmTimer, DisarmTimer, OutgoingMail
from weft.core.ids import EntryId
from weft.core.run import by_hand, lifecycle
from weft.core.run.children import start_for_child
from weft.core.run.decide import DECIDE
from weft.core.run.effects import EFFECTS
from weft.core.run.env import Env
from weft.core.run.evolve import with_style_rows
from weft.core.run.mail import MAIL
from weft.core.run.state import Status, Undo
from weft.core.run.statuses import not_in_graph, unknown_command
from weft.core.run.style import AnyRun, DecideRows, EffectRows, Ended, EvolveRows, JudgedPatch, MailRows
from weft.core.schedule.calendar import ATTRIBUTE, Calendar, schedule_name, start_at
from weft.core.schedule.firing import BURST_MAX, Firing
from weft.core.schedule.state import Backfill, QueuedRun, ScheduleState, StartedRun, encode_state, restore_state
from weft.errors import Refused

CLOCK = EntryId(1)
"""The number of the schedule's only timer."""
CARRY_EVERY = 1_000
"""After this many firings the state is carried forward, so that the log before it can be deleted."""
LEFT_OUT = frozenset(
    {
        *(c.ReportTaskSucceeded, c.ReportTaskFailed, c.ReportTaskLost, c.DeliverMessage),
        *(c.DecideAsk, c.NoteTold, c.ReportChildEnded, c.MoveRun, c.AdoptRun),
    }
)
"""Commands that a schedule refuses: it has no tasks, messages, questions or children, and belongs to its store."""
_OWN = ("uid", "seq", "at")
"""The fields of a state that a carried state does not replace."""


def _row_of_style(decide: Callable[[Any, Any, Env], Sequence[e.AnyEvent]]) -> Callable[..., Sequence[e.AnyEvent]]:
    """Make the row of a command that the style itself decides."""
    return lambda run, command, env: decide(run.style, command, env)


class ScheduleStyle:
    """The clock and the runs of one schedule."""

    __slots__ = ("firing", "state")

    name = "schedule"
    has_code = False
    retried_from: ClassVar[frozenset[Status]] = frozenset({"failed"})
    repeats_undone = False
    unanswered = ""
    consequences = None

    def __init__(self, calendar: Calendar, state: ScheduleState) -> None:
        self.state = state
        self.firing = Firing(calendar, state)

    # --- called by the kernel -------------------------------------------------------------------------------------

    def begin(self, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
        """Start the schedule. Its first nominal time lies after now."""
        started = lifecycle.decide_start(self.state, command, env.now)
        if not isinstance(command, c.StartSchedule) or command.refused:
            return started
        spec = command.spec
        return (*started, e.ScheduleDeclared(spec=spec, next=self.firing.next_after(spec, env.now), by=command.by))

    def follow(self, env: Env) -> Sequence[e.AnyEvent]:
        state = self.state
        if state.fired - state.fired_carried >= CARRY_EVERY:
            return (e.ScheduleCarried(state=Raw(encode_state(state))),)
        return self.firing.follow(env)

    def set_ended(self, command: c.SetResult) -> Sequence[e.AnyEvent]:
        raise by_hand.nothing_open(self.state, command.place)

    def result_error(self, number: int, output: Raw, env: Env) -> str | None:
        return None

    def needs_log(self, command: c.PatchRun | c.RetryRun) -> bool:
        return False

    def retry(self, command: c.RetryRun, env: Env) -> Sequence[e.AnyEvent]:
        raise Refused(f"{self.state.run_id} is a schedule; it cannot be retried.", hint="weft schedule trigger NAME")

    def opened(self, event: Any) -> None:
        """Do nothing: a schedule opens only its timer."""

    def settled(self, ended: Ended) -> None:
        """Do nothing: the row of each event changes the state."""

    def retry_later(self, number: int, due: int) -> None:
        """Do nothing: a schedule has no tasks."""

    def locate(self, number: int) -> str:
        return "clock" if number == CLOCK else ""

    def question(self, name: int | str) -> int | None:
        return None

    def judge_patch(self, command: c.PatchRun, env: Env) -> JudgedPatch:
        raise unknown_command(self.state.run_id, self.name, command)

    @property
    def review(self) -> Sequence[str]:
        return ()

    def no_work_at(self, place: str) -> str:
        return "a schedule performs no steps"

    def step_at(self, place: str) -> str:
        return ""

    def named_places(self) -> Sequence[str]:
        return ()

    def is_all_at(self, place: str) -> bool:
        raise not_in_graph(self.state, place)

    def cancel_open(self) -> Sequence[e.AnyEvent]:
        """Return no events: the runs that the schedule started go on without it."""
        return ()

    def undo(self, done: Undo, env: Env) -> Sequence[e.AnyEvent]:
        return ()

    def join_undo(self, dropped: list[Undo]) -> None:
        """Do nothing: a schedule has nothing to undo."""

    def start_for_child(self, event: e.ChildStarted) -> c.StartRun:
        return start_for_child(self.state, event)

    # --- commands -------------------------------------------------------------------------------------------------

    def _decide_declare(self, command: c.DeclareSchedule, env: Env) -> Sequence[e.AnyEvent]:
        """Change the definition. Nominal times that were not decided yet follow the new one."""
        state = self.state
        if state.over:
            decided = env.now
        elif command.spec == state.spec:
            return ()
        else:
            decided = min(env.now, state.next - 1) if state.next else env.now
        following = self.firing.next_after(command.spec, decided)
        return (e.ScheduleDeclared(spec=command.spec, next=following, by=command.by),)

    def _decide_trigger(self, command: c.TriggerSchedule, env: Env) -> Sequence[e.AnyEvent]:
        return self.firing.trigger(command.label, command.by, env) if self._is_begun() else ()

    def _decide_backfill(self, command: c.BackfillSchedule, env: Env) -> Sequence[e.AnyEvent]:
        if not self._is_begun():
            return ()
        return self.firing.backfill(command.first, min(command.last, env.now), command.overlap, command.by)

    def _is_begun(self) -> bool:
        """Return whether the schedule has begun, and not only its start is in its inbox. Raises Refused if removed."""
        if self.state.over:
            name = schedule_name(self.state.run_id)
            raise Refused(f"The schedule {name} was removed.", hint=f"weft schedule add {name} ...")
        return self.state.started

    def _decide_run_ended(self, command: c.ReportRunEnded, env: Env) -> Sequence[e.AnyEvent]:
        """Note the end of a run. After too many failures in a row the schedule is paused."""
        state = self.state
        if command.uid not in state.open_runs:
            return ()
        ended = e.ScheduledRunEnded(uid=command.uid, status=command.status)
        most = state.spec.pause_after
        if not most or command.status != "failed" or state.failures + 1 < most or state.status != "running":
            return (ended,)
        runs = "run" if most == 1 else f"{most} runs in a row"
        return (ended, e.RunPaused(reason=f"{runs} failed, the last one {state.open_runs[command.uid].run_id}"))

    # --- events ---------------------------------------------------------------------------------------------------

    def _set_clock(self) -> None:
        """Set the timer to when the next nominal time starts."""
        state = self.state
        if state.status in ("paused", "held") or state.over:
            state.timers = {}
        elif state.burst >= BURST_MAX:
            state.timers = {CLOCK: state.at}
        elif state.next:
            state.timers = {CLOCK: start_at(schedule_name(state.run_id), state.spec, state.next)}
        else:
            state.timers = {}

    def _advance_clock(self, event: e.ScheduleFired | e.ScheduledRunFound) -> None:
        state = self.state
        state.queued = [run for run in state.queued if run.run_id != event.run_id]
        if event.next != e.UNCHANGED:
            state.next = event.next
        if event.backfill_next != e.UNCHANGED and state.backfills:
            first = state.backfills[0]
            first.next = event.backfill_next
            if not first.next or first.next > first.last:
                del state.backfills[0]

    def _evolve_declared(self, event: e.ScheduleDeclared) -> None:
        state = self.state
        state.spec = event.spec
        state.next = event.next
        state.backfills = []
        if state.over:
            state.status, state.ended, state.cancelled, state.failures = "running", False, None, 0
        self._set_clock()

    def _evolve_fired(self, event: e.ScheduleFired) -> None:
        state = self.state
        self._advance_clock(event)
        state.open_runs[event.uid] = StartedRun(run_id=event.run_id, nominal=event.nominal)
        state.fired += 1
        state.burst += 1
        state.last_run, state.last_nominal = event.run_id, event.nominal
        self._set_clock()

    def _evolve_found(self, event: e.ScheduledRunFound) -> None:
        self._advance_clock(event)
        self.state.found += 1
        self._set_clock()

    def _evolve_queued(self, event: e.ScheduleQueued) -> None:
        state = self.state
        state.queued.append(QueuedRun(event.run_id, event.nominal, event.by))
        for uid in event.cancels:
            state.open_runs[uid].cancelled = True
        if event.next != e.UNCHANGED:
            state.next = event.next
        self._set_clock()

    def _evolve_missed(self, event: e.ScheduleMissed) -> None:
        state = self.state
        state.missed += event.count
        if event.run_id:
            state.queued = [run for run in state.queued if run.run_id != event.run_id]
        if event.next != e.UNCHANGED:
            state.next = event.next
        self._set_clock()

    def _evolve_run_ended(self, event: e.ScheduledRunEnded) -> None:
        state = self.state
        del state.open_runs[event.uid]
        if event.status not in ("cancelled", "moved"):
            state.failures = state.failures + 1 if event.status == "failed" else 0

    def _evolve_backfill_requested(self, event: e.BackfillRequested) -> None:
        self.state.backfills.append(Backfill(event.first, event.last, event.overlap))

    def _evolve_timer_fired(self, event: e.TimerFired) -> None:
        self.state.burst = 0

    def _evolve_paused(self, event: e.RunPaused) -> None:
        self.state.pause_reason = event.reason
        self._set_clock()

    def _evolve_held(self, event: e.RunHeld) -> None:
        self._set_clock()

    def _evolve_resumed(self, event: e.RunResumed) -> None:
        state = self.state
        state.paused_until, state.pause_reason, state.failures, state.burst = state.at, "", 0, 0
        self._set_clock()

    def _evolve_removed(self, event: e.RunCancelledEvent) -> None:
        """Forget what was planned. Ends of runs are not reported to a schedule that is over."""
        state = self.state
        state.next, state.open_runs, state.queued, state.backfills = 0, {}, [], []

    def _evolve_carried(self, event: e.ScheduleCarried) -> None:
        """Take over the whole state, as if nothing came before it."""
        carried = restore_state(bytes(event.state))
        for field in carried.__struct_fields__:
            if field not in _OWN:
                setattr(self.state, field, getattr(carried, field))
        self.state.fired_carried = self.state.fired

    evolve: ClassVar[EvolveRows] = with_style_rows(
        {
            e.ScheduleDeclared: _evolve_declared,
            e.ScheduleFired: _evolve_fired,
            e.ScheduleQueued: _evolve_queued,
            e.ScheduleMissed: _evolve_missed,
            e.ScheduledRunFound: _evolve_found,
            e.ScheduledRunEnded: _evolve_run_ended,
            e.BackfillRequested: _evolve_backfill_requested,
            e.ScheduleCarried: _evolve_carried,
            e.TimerFired: _evolve_timer_fired,
            e.RunPaused: _evolve_paused,
            e.RunHeld: _evolve_held,
            e.RunResumed: _evolve_resumed,
            e.RunCancelledEvent: _evolve_removed,
        }
    )

    decide: ClassVar[DecideRows] = {
        **{kind: row for kind, row in DECIDE.items() if kind not in LEFT_OUT},
        c.StartSchedule: DECIDE[c.StartRun],
        c.DeclareSchedule: _row_of_style(_decide_declare),
        c.TriggerSchedule: _row_of_style(_decide_trigger),
        c.BackfillSchedule: _row_of_style(_decide_backfill),
        c.ReportRunEnded: _row_of_style(_decide_run_ended),
    }

    effects: ClassVar[EffectRows]
    mail: ClassVar[MailRows]


def _arm_clock(run: AnyRun, _: e.AnyEvent) -> Sequence[AnyEffect]:
    due = run.state.timers.get(CLOCK)
    return (DisarmTimer(CLOCK),) if due is None else (ArmTimer(CLOCK, due),)


def _start_run(run: AnyRun, event: e.ScheduleFired) -> Sequence[OutgoingMail]:
    """Start a run by the name of its workflow: the host that takes it up runs the version that it has then."""
    spec: e.ScheduleSpec = run.state.spec  # type: ignore[attr-defined]
    start = c.StartRun(
        run_id=event.run_id,
        workflow=spec.workflow,
        version="",
        style="",
        input=spec.input,
        scheduled_at=event.nominal,
        attributes={ATTRIBUTE: schedule_name(run.state.run_id)},
        schedule=run.state.uid,
        priority=spec.priority,
    )
    return (OutgoingMail(to=event.uid, command=start, create=True),)


def _cancel_runs(_: AnyRun, event: e.ScheduleQueued) -> Sequence[OutgoingMail]:
    reason = f"{event.run_id} takes its place"
    return [OutgoingMail(to=uid, command=c.CancelRun(reason=reason)) for uid in event.cancels]


ScheduleStyle.effects = {
    **EFFECTS,
    **dict.fromkeys(
        (e.ScheduleDeclared, e.ScheduleFired, e.ScheduleQueued, e.ScheduleMissed, e.ScheduledRunFound), _arm_clock
    ),
    e.RunPaused: _arm_clock,
    e.RunHeld: _arm_clock,
}
ScheduleStyle.mail = {**MAIL, e.ScheduleFired: _start_run, e.ScheduleQueued: _cancel_runs}
