"""Make, look at and steer schedules from Python, through a store or a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from weft.authoring.handles import Handle
from weft.authoring.policies import Duration
from weft.core.events import Dst, Overlap
from weft.runtime.schedule_form import ScheduleForm
from weft.runtime.schedules import AddedSchedule, NominalTime, Period, Schedule

if TYPE_CHECKING:
    from weft.authoring.runnable import Runnable


class ScheduleAccess(Protocol):
    """What carries out commands to schedules: the service of a store, or a server."""

    async def add(self, form: ScheduleForm, *, by: str = "") -> AddedSchedule: ...

    async def get(self, name: str) -> Schedule: ...

    def all(self) -> AsyncIterator[Schedule]: ...

    async def next(self, name: str, count: int = 5) -> Sequence[NominalTime]: ...

    async def trigger(self, name: str, *, by: str = "") -> str: ...

    async def backfill(self, name: str, period: Period, *, by: str = "") -> int: ...

    async def pause(self, name: str, reason: str = "", *, by: str = "") -> None: ...

    async def resume(self, name: str, reason: str = "", *, by: str = "") -> None: ...

    async def remove(self, name: str, reason: str = "", *, by: str = "") -> None: ...


class Schedules:
    """The schedules of a store: ``app.schedules``, ``client.schedules``."""

    def __init__(self, open_access: Callable[[], ScheduleAccess], handle: Callable[[str], Handle[Any]]) -> None:
        self._open_access = open_access
        self._handle = handle

    @property
    def _access(self) -> ScheduleAccess:
        """The schedules behind this object. Raises NotRunning."""
        return self._open_access()

    async def add(
        self,
        name: str,
        workflow: str | Runnable[Any],
        input: Mapping[str, Any] | None = None,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        timezone: str = "UTC",
        dst: Dst = "run",
        overlap: Overlap = "skip",
        catch_up: Duration = "1m",
        jitter: Duration | None = None,
        until: datetime | str | None = None,
        pause_after: int | None = None,
        priority: int = 0,
    ) -> AddedSchedule:
        """Make a schedule that every host runs until it is removed, or change it. Raises BadSchedule, Refused.

        The answer says what it ``replaced``, and has a ``warning`` if no running host offers the workflow.
        """
        form = ScheduleForm(
            name=name,
            workflow=workflow if isinstance(workflow, str) else workflow.name,
            input=input or {},
            cron=cron,
            every=every,
            timezone=timezone,
            dst=dst,
            overlap=overlap,
            catch_up=catch_up,
            jitter=jitter,
            until=until,
            pause_after=pause_after,
            priority=priority,
        )
        return await self._access.add(form)

    async def get(self, name: str) -> Schedule:
        """Return one schedule. Raises NotFound."""
        return await self._access.get(name)

    def list(self) -> AsyncIterator[Schedule]:
        """List schedules, newest first, without those that were removed."""
        return self._access.all()

    async def next(self, name: str, count: int = 5) -> Sequence[NominalTime]:
        """Return the next nominal times of a schedule. Raises NotFound."""
        return await self._access.next(name, count)

    async def trigger(self, name: str) -> Handle[Any]:
        """Start a run now and return its handle. Raises Refused if the overlap does not allow it."""
        return self._handle(await self._access.trigger(name))

    async def backfill(
        self, name: str, first: datetime, last: datetime, *, overlap: Literal["queue", "allow"] = "queue"
    ) -> int:
        """Start the runs that the nominal times of a past period lack. Returns how many times there are."""
        return await self._access.backfill(name, Period(first=first, last=last, overlap=overlap))

    async def pause(self, name: str, reason: str = "") -> None:
        """Pause a schedule. Times that fall into the pause are missed."""
        await self._access.pause(name, reason)

    async def resume(self, name: str, reason: str = "") -> None:
        """Resume a paused schedule."""
        await self._access.resume(name, reason)

    async def remove(self, name: str, reason: str = "") -> None:
        """Remove a schedule. The runs that it started go on."""
        await self._access.remove(name, reason)
