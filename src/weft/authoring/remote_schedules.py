"""Schedules on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from weft.authoring.remote import PAGE, Remote
from weft.runtime.schedule_form import ScheduleForm, make_schedule_spec
from weft.runtime.schedules import AddedSchedule, NominalTime, Period, Schedule
from weft.server.endpoints.schedules import Backfilled, NextTimes, ScheduleList, Triggered


class RemoteSchedules:
    """Carries out commands to schedules through the API of a server, which knows who asks: ``by`` is not sent."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def add(self, form: ScheduleForm, *, by: str = "") -> AddedSchedule:
        make_schedule_spec(form)  # what is wrong with it is known here
        fields = {name: _form_value(getattr(form, name)) for name in form.__struct_fields__}
        return await self._remote.post("schedules", fields, AddedSchedule)

    async def get(self, name: str) -> Schedule:
        return await self._remote.get_view(_schedule_path(name), Schedule)

    async def all(self) -> AsyncIterator[Schedule]:
        cursor: str | None = None
        while True:
            asked = [("limit", str(PAGE)), *([("cursor", cursor)] if cursor else [])]
            page = await self._remote.get_view("schedules", ScheduleList, asked)
            for schedule in page.schedules:
                yield schedule
            cursor = page.cursor
            if cursor is None:
                return

    async def next(self, name: str, count: int = 5) -> Sequence[NominalTime]:
        return (await self._remote.get_view(f"{_schedule_path(name)}/next", NextTimes, [("count", str(count))])).times

    async def trigger(self, name: str, *, by: str = "") -> str:
        return (await self._remote.post(f"{_schedule_path(name)}/trigger", {}, Triggered)).run

    async def backfill(self, name: str, period: Period, *, by: str = "") -> int:
        body = {"from": period.first, "to": period.last, "overlap": period.overlap}
        return (await self._remote.post(f"{_schedule_path(name)}/backfill", body, Backfilled)).times

    async def pause(self, name: str, reason: str = "", *, by: str = "") -> None:
        await self._remote.post(f"{_schedule_path(name)}/pause", {"reason": reason}, Schedule)

    async def resume(self, name: str, reason: str = "", *, by: str = "") -> None:
        await self._remote.post(f"{_schedule_path(name)}/resume", {"reason": reason}, Schedule)

    async def remove(self, name: str, reason: str = "", *, by: str = "") -> None:
        await self._remote.post(_schedule_path(name), {"reason": reason}, Schedule, method="DELETE")


def _schedule_path(name: str) -> str:
    return f"schedules/{quote(name, safe='')}"


def _form_value(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, datetime) else value
