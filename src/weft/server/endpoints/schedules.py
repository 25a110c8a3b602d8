"""Schedules: runs that start by themselves at fixed times."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from weft.runtime.schedule_form import ScheduleForm
from weft.runtime.schedules import AddedSchedule, NominalTime, Period, Schedule, ScheduleService
from weft.server import views
from weft.server.request import ApiCall

Span = Annotated[str, Meta(max_length=100)] | views.Seconds
"""A duration: text such as "1h30m", or seconds."""


class NewSchedule(views.Form, frozen=True, kw_only=True):
    """A schedule to make, or to change: what it starts, and when."""

    name: views.Name
    workflow: views.Name
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    cron: Annotated[str, Meta(max_length=200)] | None = None
    every: Span | None = None
    timezone: views.Name = "UTC"
    dst: Annotated[str, Meta(max_length=20)] = "run"
    overlap: Annotated[str, Meta(max_length=20)] = "skip"
    catch_up: Span = "1m"
    jitter: Span | None = None
    until: Annotated[str, Meta(max_length=100)] | None = None
    pause_after: int | None = None
    priority: int = 0
    by: views.Text = ""
    """Who makes it. Ignored if the request has an API key, which says it."""


class ScheduleList(msgspec.Struct, frozen=True):
    """A page of schedules, newest first."""

    schedules: list[Schedule]
    cursor: str | None


class NextQuery(views.Form, frozen=True, kw_only=True):
    count: views.Limit = 5


class NextTimes(msgspec.Struct, frozen=True):
    """The next nominal times of a schedule."""

    times: list[NominalTime]


class Triggered(msgspec.Struct, frozen=True):
    """The run that was started, or that will start when others have ended."""

    run: str


class Trigger(views.Form, frozen=True, kw_only=True):
    """Who starts a run now."""

    by: views.Text = ""


class NewBackfill(views.Form, frozen=True, kw_only=True):
    """The period whose nominal times get the runs that they lack. Without a zone: in that of the schedule."""

    first: datetime = msgspec.field(name="from")
    last: datetime = msgspec.field(name="to")
    overlap: Literal["queue", "allow"] = "queue"
    by: views.Text = ""


class Backfilled(msgspec.Struct, frozen=True):
    """How many nominal times there are in the period."""

    times: int


async def list_schedules(call: ApiCall) -> ScheduleList:
    """Return a page of schedules."""
    asked = call.query_as(views.PageQuery)
    found, cursor = await ScheduleService(call.service).list(after=asked.cursor, limit=asked.limit)
    return ScheduleList(found, cursor)


async def show(call: ApiCall) -> Schedule:
    """Return one schedule."""
    return await ScheduleService(call.service).get(call.parameters["name"])


async def put(call: ApiCall) -> AddedSchedule:
    """Make a schedule, or change it."""
    new = call.body_as(NewSchedule)
    fields = {name: getattr(new, name) for name in new.__struct_fields__ if name != "by"}
    return await ScheduleService(call.service).add(ScheduleForm(**fields), by=call.by(new.by))


async def next_times(call: ApiCall) -> NextTimes:
    """Return the next nominal times of a schedule."""
    count = call.query_as(NextQuery).count
    return NextTimes(list(await ScheduleService(call.service).next(call.parameters["name"], count)))


async def trigger(call: ApiCall) -> Triggered:
    """Start a run now."""
    who = call.by(call.body_as(Trigger).by)
    return Triggered(await ScheduleService(call.service).trigger(call.parameters["name"], by=who, key=call.key))


async def backfill(call: ApiCall) -> Backfilled:
    """Start the runs that past nominal times lack."""
    new = call.body_as(NewBackfill)
    period = Period(first=new.first, last=new.last, overlap=new.overlap)
    schedules = ScheduleService(call.service)
    return Backfilled(await schedules.backfill(call.parameters["name"], period, by=call.by(new.by), key=call.key))


async def pause(call: ApiCall) -> Schedule:
    """Pause a schedule. What falls into the pause is missed."""
    await ScheduleService(call.service).pause(call.parameters["name"], **_reason_and_person(call), key=call.key)
    return await show(call)


async def resume(call: ApiCall) -> Schedule:
    """Resume a paused schedule."""
    await ScheduleService(call.service).resume(call.parameters["name"], **_reason_and_person(call), key=call.key)
    return await show(call)


async def remove(call: ApiCall) -> Schedule:
    """Remove a schedule. The runs that it started go on."""
    await ScheduleService(call.service).remove(call.parameters["name"], **_reason_and_person(call), key=call.key)
    return await show(call)


def _reason_and_person(call: ApiCall) -> dict[str, str]:
    """Return why something is done, and who does it."""
    given = call.body_as(views.Remark)
    return {"reason": given.reason, "by": call.by(given.by)}
