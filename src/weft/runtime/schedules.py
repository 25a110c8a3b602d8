"""Schedules: declare, list, trigger, backfill, pause, resume and remove them.

A schedule is a run with the id ``schedule/NAME``. Only hosts that declare it claim one that is declared in code. Every
host may claim one that was made by the API or the command line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.durations import format_ms
from weft.core.events import NULL, ScheduleSpec
from weft.core.ids import RunId
from weft.core.run.state import OVER
from weft.core.schedule.calendar import (
    STORED,
    WORKFLOW,
    declared_version,
    is_declared,
    run_id_of,
    run_label,
    schedule_id,
    schedule_name,
    start_at,
)
from weft.core.schedule.state import ScheduleState
from weft.errors import BadSchedule, BadValue, NotFound, Refused, RunFinished, UsageError, WeftError
from weft.ports.hosts import Hosts
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.cron_calendar import CALENDAR, clock_notes, zone
from weft.runtime.offered_versions import check_offered_start, warn_if_not_offered
from weft.runtime.schedule_form import ALL, ScheduleForm, make_schedule_spec
from weft.runtime.service import RunService
from weft.runtime.start_support import StartOptions

LABEL_CHARS = 8
OVERLAPS = ("queue", "allow")
"""How the runs of a backfill may overlap."""
NEXT_MAX = 1_000
BACKFILL_MAX = 5_000
"""The most times of one backfill, so that a slip of the pen does not start runs for decades."""
LIST = "weft schedule list shows what is there."

ScheduleStatus = Literal["active", "paused", "held", "ended", "undeclared", "removed"]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as people see it."""

    name: str
    status: ScheduleStatus
    workflow: str
    input: Raw
    cron: str | None
    every: str | None
    timezone: str
    dst: str
    overlap: str
    catch_up: str
    jitter: str | None
    until: datetime | None
    pause_after: int | None
    priority: int
    """The priority of its runs."""
    declared: bool
    """It is declared in code."""
    next: datetime | None
    """The next nominal time."""
    last_run: str | None
    open_runs: list[str]
    queued: int
    backfills: int
    fired: int
    missed: int
    found: int
    """How many runs existed already when their time came."""
    reason: str
    """Why it is paused or held."""


class AddedSchedule(Schedule, frozen=True, kw_only=True):
    """A schedule that was made or changed just now."""

    replaced: Schedule | None
    """What it was until now, if it was changed."""
    warning: str
    """What may be wrong with it: no running host offers its workflow."""


class NominalTime(msgspec.Struct, frozen=True, kw_only=True):
    """A nominal time of a schedule."""

    at: datetime
    """In UTC."""
    local: str
    """In the zone of the schedule."""
    starts: datetime
    """When its run starts: later by the jitter."""
    run: str
    """The id of its run."""
    note: str
    """What is unusual: the clocks change on that day."""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A period of the past, and whether its runs wait for each other. A time without a zone is in the schedule's."""

    first: datetime
    last: datetime
    overlap: str = "queue"


async def declare_all(service: RunService, specs: Mapping[str, ScheduleSpec]) -> None:
    """Declare the schedules of this host's code. What has not changed is left alone."""
    schedules = ScheduleService(service)
    for name, spec in specs.items():
        await schedules.put(name, spec, declared=True)


class ScheduleService:
    """The schedules of a store, as one caller may see and change them."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    # --- changing -------------------------------------------------------------------------------------------------

    async def add(self, form: ScheduleForm, *, by: str = "") -> AddedSchedule:
        """Make a schedule, or change it. Raises BadSchedule, and Refused if the schedule is declared in code."""
        spec = self._check_form(form)
        if self._service.local is None and not isinstance(form.input, bytes):
            try:
                await check_offered_start(self._service, form.workflow, form.input)
            except BadValue as error:
                raise BadSchedule(f"input: {error.message}", hint=error.hint, code="schedule.bad_input") from error
        row = await self._row_or_none(form.name)
        if row is not None and is_declared(row.version) and row.status not in OVER and await self._is_hosted(row):
            raise Refused(
                f"The schedule {form.name} is declared in code.", hint="Change it there.", code="schedule.declared"
            )
        before = await self.get(form.name) if row is not None and row.status not in OVER else None
        await self.put(form.name, spec, by=by)
        now = await self.get(form.name)
        fields = {name: getattr(now, name) for name in Schedule.__struct_fields__}
        is_changed = before is not None and _what_it_starts(before) != _what_it_starts(now)
        return AddedSchedule(
            **fields,
            replaced=before if is_changed else None,
            warning=await warn_if_not_offered(self._service, spec.workflow),
        )

    def _check_form(self, form: ScheduleForm) -> ScheduleSpec:
        """Read a form, and check that the workflow takes the input if a host runs here. Raises BadSchedule."""
        spec = make_schedule_spec(form, now=self._service.clock.now_ms())
        local = self._service.local
        if local is None or isinstance(form.input, bytes):
            return spec
        callee = local.catalogue.resolve(form.workflow, "")
        program = local.catalogue.program(form.workflow, callee.version) if callee is not None else None
        if program is None:
            return spec  # another host may have it
        try:
            return msgspec.structs.replace(spec, input=Raw(program.check(form.input)))
        except WeftError as error:
            raise BadSchedule(f"input: {error.message}", hint=error.hint, code="schedule.bad_input") from error

    async def put(self, name: str, spec: ScheduleSpec, *, declared: bool = False, by: str = "") -> None:
        """Make a schedule, change its definition, or add it again after it was removed."""
        service = self._service
        kept = await service.values.keep(bytes(spec.input))
        spec = msgspec.structs.replace(spec, input=Raw(kept))
        version = declared_version(name) if declared else STORED
        row = await self._row_or_none(name)
        if row is None:
            start = c.StartSchedule(
                run_id=schedule_id(name),
                workflow=WORKFLOW,
                input=NULL,
                version=version,
                style="schedule",
                spec=spec,
                by=by,
            )
            if (await service.create(start, StartOptions(chosen=True))).created:
                return
            row = await self._find_row(name)
        if row.status in OVER or (await self._read_state(row)).spec != spec:
            await service.tell(RunId(schedule_id(name)), c.DeclareSchedule(spec=spec, version=version, by=by))

    async def trigger(self, name: str, *, by: str = "", key: str | None = None) -> str:
        """Start a run now. Returns its id. Raises Refused if the schedule's overlap does not allow it."""
        row = await self._find_row(name)
        label = f"now-{values.digest((key or self._service.ids.new()).encode())[:LABEL_CHARS]}"
        await self._tell_schedule(row, c.TriggerSchedule(label=label, by=by), key)
        return run_id_of(row.id, label)

    async def backfill(self, name: str, period: Period, *, by: str = "", key: str | None = None) -> int:
        """Start the runs of past nominal times that have none. Returns how many times there are.

        Raises BadSchedule, and RunFinished if the schedule was removed.
        """
        row = await self._find_row(name)
        state = await self._state_to_go_on(row)
        begin, end = (_in_zone(moment, state.spec) for moment in (period.first, period.last))
        self._check_backfill(begin, end, period.overlap)
        times = takewhile(lambda nominal: nominal <= end, CALENDAR.times(state.spec, begin - 1))
        some = list(islice(times, BACKFILL_MAX + 1))
        count = len(some)
        if count > BACKFILL_MAX:
            last = datetime.fromtimestamp(some[-2] / 1000, zone(state.spec.timezone)).isoformat(timespec="seconds")
            message = f"From then to then there are more than {BACKFILL_MAX:,} times, the most for one backfill."
            hint = f"Choose a shorter period. The first {BACKFILL_MAX:,} times end at {last}."
            raise BadSchedule(message, hint=hint, code="schedule.bad_backfill")
        if count:
            overlap: Any = period.overlap
            command = c.BackfillSchedule(first=begin, last=end, overlap=overlap, by=by)
            await self._tell_schedule(row, command, key)
        return count

    def _check_backfill(self, first: int, last: int, overlap: str) -> None:
        wrong = []
        if last < first:
            wrong.append("to is before from")
        if last > self._service.clock.now_ms():
            wrong.append("to lies in the future")
        if overlap not in OVERLAPS:
            wrong.append(f"overlap={overlap!r} is not one of {', '.join(OVERLAPS)}")
        if wrong:
            raise BadSchedule(f"The backfill is not possible: {'; '.join(wrong)}.", code="schedule.bad_backfill")

    async def pause(self, name: str, reason: str = "", *, by: str = "", key: str | None = None) -> None:
        """Pause a schedule. Times that fall into the pause are missed."""
        row = await self._find_row(name)
        await self._tell_schedule(row, c.PauseRun(reason, by), key)

    async def resume(self, name: str, reason: str = "", *, by: str = "", key: str | None = None) -> None:
        """Resume a paused schedule."""
        row = await self._find_row(name)
        await self._tell_schedule(row, c.ResumeRun(reason, by), key)

    async def remove(self, name: str, reason: str = "", *, by: str = "", key: str | None = None) -> None:
        """Remove a schedule. The runs that it started go on."""
        row = await self._find_row(name)
        await self._tell_schedule(row, c.CancelRun(reason, by=by), key)

    async def _tell_schedule(self, row: RunRow, command: c.Mailed, key: str | None) -> None:
        """Give a schedule a command. Raises RunFinished if it was removed."""
        try:
            await self._service.tell(row.id, command, key=key)
        except RunFinished:
            raise _removed_error(row) from None

    # --- looking --------------------------------------------------------------------------------------------------

    async def get(self, name: str) -> Schedule:
        """Return one schedule. Raises NotFound."""
        row = await self._find_row(name)
        return await self._schedule_view(row, await self._hosted_versions())

    async def list(self, *, after: str | None = None, limit: int = 100) -> tuple[list[Schedule], str | None]:
        """Return a page of schedules, newest first, without those that were removed; and the cursor of the next."""
        page = await self._service.search(RunQuery(workflow=WORKFLOW, after=after, limit=limit))
        hosted = await self._hosted_versions()
        views = [await self._schedule_view(row, hosted) for row in page.rows if row.status not in OVER]
        return views, page.cursor

    async def all(self) -> AsyncIterator[Schedule]:
        """Yield all schedules that were not removed, newest first."""
        after: str | None = None
        while True:
            views, after = await self.list(after=after)
            for view in views:
                yield view
            if after is None:
                return

    async def next(self, name: str, count: int = 5) -> Sequence[NominalTime]:
        """Return the next nominal times of a schedule. Raises UsageError, and RunFinished if it was removed."""
        if count < 1:
            raise UsageError(f"{count} is not a number of nominal times.", hint="Ask for one at least.")
        row = await self._find_row(name)
        state = await self._state_to_go_on(row)
        now = self._service.clock.now_ms()
        after = max(now, state.next - 1) if state.next else now
        return next_times(row.id, state.spec, after, count)

    async def _schedule_view(self, row: RunRow, hosted: frozenset[str] | None) -> Schedule:
        state = await self._read_state(row)
        spec = state.spec
        name = schedule_name(row.id)
        return Schedule(
            name=name,
            status=_schedule_status(row, state, is_undeclared=_is_undeclared(row, hosted)),
            workflow=spec.workflow,
            input=Raw(await self._service.values.load(bytes(spec.input))),
            cron=spec.cron or None,
            every=format_ms(spec.every_ms) if spec.every_ms else None,
            timezone=spec.timezone,
            dst=spec.dst,
            overlap=spec.overlap,
            catch_up=ALL if spec.catch_up_ms < 0 else format_ms(spec.catch_up_ms),
            jitter=format_ms(spec.jitter_ms) if spec.jitter_ms else None,
            until=_schedule_time(spec.until),
            pause_after=spec.pause_after or None,
            priority=spec.priority,
            declared=is_declared(row.version),
            next=_schedule_time(state.next),
            last_run=state.last_run or None,
            open_runs=[run.run_id for run in state.open_runs.values()],
            queued=len(state.queued),
            backfills=len(state.backfills),
            fired=state.fired,
            missed=state.missed,
            found=state.found,
            reason=state.held.message if state.held is not None else state.pause_reason,
        )

    async def _read_state(self, row: RunRow) -> ScheduleState:
        """Return the state of a schedule, with the definition that its host has not read yet, if there is one."""
        # Read before the state: what the host reads in between is in both.
        waiting = await self._service.reader.waiting_commands(row)
        state = await self._service.reader.state(row)
        if not isinstance(state, ScheduleState):
            raise NotFound(f"{row.id} is not a schedule.")
        if not state.started:
            start = await self._service.reader.started_with(row)
            if isinstance(start, c.StartSchedule):
                state.spec = start.spec
                state.next = next(CALENDAR.times(start.spec, self._service.clock.now_ms()), 0)
        for command in waiting:
            if isinstance(command, c.DeclareSchedule):
                now = self._service.clock.now_ms()
                decided = min(now, state.next - 1) if state.next else now
                state.spec = command.spec
                if state.over:
                    state.status = "running"  # it is added again
                state.next = next(CALENDAR.times(command.spec, decided), 0)
        return state

    async def _state_to_go_on(self, row: RunRow) -> ScheduleState:
        """Return the state of a schedule that was not removed. Raises RunFinished."""
        state = await self._read_state(row)
        if state.over:
            raise _removed_error(row)
        return state

    async def _find_row(self, name: str) -> RunRow:
        found = await self._row_or_none(name)
        if found is None:
            raise NotFound(f"There is no schedule {name[:60]!r}.", hint=LIST)
        return found

    async def _row_or_none(self, name: str) -> RunRow | None:
        found = await self._service.store.directory.find(RunId(schedule_id(name)))
        return found if found is not None and found.workflow == WORKFLOW else None

    async def _hosted_versions(self) -> frozenset[str] | None:
        """Return the versions of schedules that living hosts run. None: there are no hosts to ask."""
        # A tenant cannot see the hosts, and declares nothing.
        hosts: Hosts | None = getattr(self._service.store, "hosts", None)
        living = [host for host in await hosts.list_all() if not host.gone] if hosts is not None else []
        if not living:
            return None
        offered = [host.about.get("versions", {}).get(WORKFLOW, ()) for host in living]
        local = self._service.local
        own = [declared_version(name) for name in local.catalogue.schedules()] if local is not None else []
        return frozenset([*(version for versions in offered for version in versions), *own])

    async def _is_hosted(self, row: RunRow) -> bool:
        return row.version in (await self._hosted_versions() or ())


def next_times(run_id: str, spec: ScheduleSpec, after: int, count: int) -> list[NominalTime]:
    """Return the nominal times after a moment, with the runs that they will start."""
    name = schedule_name(run_id)
    return [
        NominalTime(
            at=datetime.fromtimestamp(nominal / 1000, UTC),
            local=datetime.fromtimestamp(nominal / 1000, zone(spec.timezone)).isoformat(timespec="seconds"),
            starts=datetime.fromtimestamp(start_at(name, spec, nominal) / 1000, UTC),
            run=run_id_of(run_id, run_label(nominal)),
            note=clock_notes(spec, nominal),
        )
        for nominal in islice(CALENDAR.times(spec, after), min(count, NEXT_MAX))
    ]


def _removed_error(row: RunRow) -> RunFinished:
    return RunFinished(f"There is no schedule {schedule_name(row.id)[:60]!r}: it was removed.", hint=LIST)


def _is_undeclared(row: RunRow, hosted: frozenset[str] | None) -> bool:
    """Return whether a schedule was declared in code, and none of the hosts declares it."""
    return is_declared(row.version) and hosted is not None and row.version not in hosted


def _what_it_starts(schedule: Schedule) -> list[Any]:
    """Return what a schedule starts and when, without what became of it."""
    return [getattr(schedule, name) for name in ScheduleForm.__struct_fields__]


def _schedule_status(row: RunRow, state: ScheduleState, *, is_undeclared: bool) -> ScheduleStatus:
    if row.status in OVER:
        return "removed"
    if is_undeclared:
        return "undeclared"
    if state.status == "paused":
        return "paused"
    if state.status == "held" or row.fault is not None:
        return "held"
    return "active" if state.next or not state.started else "ended"


def _schedule_time(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _in_zone(moment: datetime, spec: ScheduleSpec) -> int:
    """Return a time in milliseconds. One without a zone is in that of the schedule."""
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone(spec.timezone))
    return int(zoned.timestamp() * 1000)
