"""The routes of schedules."""

from __future__ import annotations

from weft.errors import NotFound, Refused, RunFinished, UsageError
from weft.runtime.schedules import AddedSchedule, Schedule
from weft.server import views
from weft.server.endpoints import schedules
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

_ONE = f"{API}/schedules/{{name}}"

SCHEDULES = (
    ApiRoute(
        name="listSchedules",
        method="GET",
        path=f"{API}/schedules",
        summary="Schedules, newest first",
        endpoint=schedules.list_schedules,
        scope=AccessScope.READ,
        query=views.PageQuery,
        answer=schedules.ScheduleList,
        errors=(UsageError,),
    ),
    ApiRoute(
        name="putSchedule",
        method="POST",
        path=f"{API}/schedules",
        summary="Make a schedule, or change it. Every host runs it until it is removed",
        endpoint=schedules.put,
        scope=AccessScope.OPERATE,
        body=schedules.NewSchedule,
        answer=AddedSchedule,
        errors=(Refused, UsageError),
    ),
    ApiRoute(
        name="getSchedule",
        method="GET",
        path=_ONE,
        summary="One schedule",
        endpoint=schedules.show,
        scope=AccessScope.READ,
        answer=Schedule,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="removeSchedule",
        method="DELETE",
        path=_ONE,
        summary="Remove a schedule; the runs that it started go on",
        endpoint=schedules.remove,
        scope=AccessScope.OPERATE,
        body=views.Remark,
        answer=Schedule,
        errors=(NotFound, RunFinished),
    ),
    ApiRoute(
        name="nextTimes",
        method="GET",
        path=f"{_ONE}/next",
        summary="The next nominal times, in UTC and in the zone of the schedule",
        endpoint=schedules.next_times,
        scope=AccessScope.READ,
        query=schedules.NextQuery,
        answer=schedules.NextTimes,
        errors=(NotFound, RunFinished, UsageError),
    ),
    ApiRoute(
        name="triggerSchedule",
        method="POST",
        path=f"{_ONE}/trigger",
        summary="Start a run now, if the overlap of the schedule allows it",
        endpoint=schedules.trigger,
        scope=AccessScope.OPERATE,
        body=schedules.Trigger,
        answer=schedules.Triggered,
        errors=(NotFound, Refused),
    ),
    ApiRoute(
        name="backfillSchedule",
        method="POST",
        path=f"{_ONE}/backfill",
        summary="Start the runs that the nominal times of a past period lack",
        endpoint=schedules.backfill,
        scope=AccessScope.OPERATE,
        body=schedules.NewBackfill,
        answer=schedules.Backfilled,
        errors=(NotFound, Refused, UsageError),
    ),
    ApiRoute(
        name="pauseSchedule",
        method="POST",
        path=f"{_ONE}/pause",
        summary="Pause a schedule; times that fall into the pause are missed",
        endpoint=schedules.pause,
        scope=AccessScope.OPERATE,
        body=views.Remark,
        answer=Schedule,
        errors=(NotFound, Refused, UsageError),
    ),
    ApiRoute(
        name="resumeSchedule",
        method="POST",
        path=f"{_ONE}/resume",
        summary="Resume a paused schedule",
        endpoint=schedules.resume,
        scope=AccessScope.OPERATE,
        body=views.Remark,
        answer=Schedule,
        errors=(NotFound, Refused),
    ),
)
