"""A schedule without a runtime: time is a number, and the runs that it starts are entries of a list."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import ArmTimer, DisarmTimer, EndRun, OutgoingMail
from weft.core.run.env import Env, MissingInputs
from weft.core.schedule.calendar import STORED, WORKFLOW, schedule_id
from weft.core.schedule.machine import ScheduleMachine
from weft.core.schedule.state import ScheduleState, restore_state
from weft.core.schedule.style import CARRY_EVERY
from weft.errors import WeftError
from weft.runtime.cron_calendar import CALENDAR

UID = "5" * 32
HOUR = 3_600_000
MINUTE = 60_000


def ms(text: str) -> int:
    """A time of day one: "09:30", or any ISO time with a zone."""
    moment = f"2026-06-01T{text}:00+00:00" if len(text) == 5 else text
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def hourly(**fields: Any) -> e.ScheduleSpec:
    return e.ScheduleSpec(**{"workflow": "job", "input": Raw(b"{}"), "cron": "0 * * * *", **fields})


class Desk:
    """Decides, folds and applies effects, as a host does. Runs end when they are told to."""

    def __init__(self, spec: e.ScheduleSpec, *, at: str = "08:30", exists: Sequence[str] = ()) -> None:
        self.now = ms(at)
        self.machine = ScheduleMachine(CALENDAR, ScheduleState(uid=UID))
        self.log: list[tuple[e.AnyEvent, int]] = []
        self.timer: int | None = None
        self.started: dict[str, str] = {}
        """Uids of all runs that were started, by id."""
        self.open: dict[str, str] = {}
        self.cancelled: list[str] = []
        self.exists = set(exists)
        self.looked_up: list[str] = []
        start = c.StartSchedule(
            run_id=schedule_id("job"),
            workflow=WORKFLOW,
            version=STORED,
            style="schedule",
            input=Raw(b"null"),
            spec=spec,
        )
        self.tell(start)

    @property
    def state(self) -> ScheduleState:
        return self.machine.state

    # --- deciding -------------------------------------------------------------------------------------------------

    def tell(self, command: c.Mailed) -> list[e.AnyEvent]:
        """Give it a command; everything that follows by itself follows. Returns the events."""
        before = len(self.log)
        self._record(self.machine.decide(command, self._env()))
        self._follow()
        return [event for event, _ in self.log[before:]]

    def _follow(self) -> None:
        known: dict[str, bool] = {}
        while True:
            try:
                events = self.machine.follow(self._env(known))
            except MissingInputs as missing:
                self.looked_up += missing.runs
                known |= {run: run in self.exists or run in self.started for run in missing.runs}
                continue
            if not events:
                return
            self._record(events)

    def _env(self, known: dict[str, bool] | None = None) -> Env:
        facts = {} if known is None else known
        return Env(now=self.now, check=lambda *_: None, run_exists=lambda run: facts.pop(run, None))

    def _record(self, events: Sequence[e.AnyEvent]) -> None:
        for event in events:
            self.machine.evolve(event, at=self.now)
            self.log.append((event, self.now))
            for effect in self.machine.effects(event):
                match effect:
                    case ArmTimer(due=due):
                        self.timer = due
                    case DisarmTimer() | EndRun():
                        self.timer = None
            for letter in self.machine.mail(event):
                self._deliver(letter)

    def _deliver(self, letter: OutgoingMail) -> None:
        if isinstance(letter.command, c.StartRun):
            assert letter.create
            assert letter.command.parent is None
            assert letter.command.run_id not in self.started, "a run is started once"
            self.started[letter.command.run_id] = letter.to
            self.open[letter.to] = letter.command.run_id
        else:
            self.cancelled.append(self.open[letter.to])

    # --- time and runs --------------------------------------------------------------------------------------------

    def until(self, text: str) -> None:
        """Let time pass up to a moment; the timer fires when it is due."""
        self.to(ms(text))

    def to(self, moment: int) -> None:
        while self.timer is not None and self.timer <= moment:
            self.now = max(self.now, self.timer)
            self._fire()
        self.now = moment

    def outage(self, text: str) -> None:
        """Let time pass while nobody hosts the schedule, and then take it up."""
        self.now = ms(text)
        self.machine = ScheduleMachine(CALENDAR, restore_state(self.machine.snapshot()))
        armed = [effect.due for effect in self.machine.outstanding() if isinstance(effect, ArmTimer)]
        self.timer = min(armed, default=None)
        self._follow()
        self.to(self.now)

    def _fire(self) -> None:
        self.timer = None
        self.tell(c.FireTimer(entry=1))  # type: ignore[arg-type]

    def end(self, run_id: str, status: str = "completed") -> list[e.AnyEvent]:
        """Let a run end."""
        uid = self.started[run_id]
        del self.open[uid]
        return self.tell(c.ReportRunEnded(uid=uid, status=status))

    # --- looking --------------------------------------------------------------------------------------------------

    def of(self, kind: type) -> list[Any]:
        return [event for event, _ in self.log if isinstance(event, kind)]

    @property
    def runs(self) -> list[str]:
        """The labels of the runs that were started, without the day."""
        return [run_id.removeprefix("job/20260601T").removesuffix("00Z") for run_id in self.started]

    @property
    def missed(self) -> list[tuple[int, str]]:
        return [(event.count, event.why) for event in self.of(e.ScheduleMissed)]


def play_schedule(chance: random.Random, *, carries: bool = False) -> list[tuple[e.AnyEvent, int]]:
    """Play a random life of a schedule. Returns its log. ``carries``: until its state is carried forward."""
    overlap = chance.choice(("skip", "queue", "cancel_old", "allow"))
    spec = hourly(overlap=overlap, catch_up_ms=chance.choice((0, 90 * MINUTE, -1)), pause_after=chance.choice((0, 2)))
    desk = Desk(spec, exists=[f"job/20260601T{hour:02}0000Z" for hour in range(9, 24) if chance.random() < 0.2])
    if carries:
        desk.state.fired = CARRY_EVERY - 2  # as if it had fired that often
    for _ in range(chance.randrange(10, 40)):
        with contextlib.suppress(WeftError):
            _play_one(desk, chance)
    return desk.log


def _play_one(desk: Desk, chance: random.Random) -> None:
    match chance.randrange(10):
        case 0 | 1 | 2 | 3:
            desk.to(desk.now + chance.randrange(1, 150) * MINUTE)
        case 4 | 5 if desk.open:
            desk.end(next(iter(desk.open.values())), chance.choice(("completed", "failed", "cancelled")))
        case 6:
            desk.tell(c.PauseRun("why"))
            desk.to(desk.now + chance.randrange(200) * MINUTE)
            desk.tell(c.ResumeRun())
        case 7:
            desk.tell(c.TriggerSchedule(label=f"now-{len(desk.log)}"))
        case 8:
            desk.tell(c.BackfillSchedule(first=ms("02:00"), last=desk.now, overlap=chance.choice(("queue", "allow"))))
        case 9 if chance.random() < 0.3:
            desk.tell(c.CancelRun("why"))
            desk.tell(c.DeclareSchedule(spec=hourly(cron=chance.choice(("5 * * * *", "*/30 * * * *")))))
