"""A client for runs that another process hosts: through the store that both share, or through its API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

from weft.authoring.goals import Plan
from weft.authoring.group import Group
from weft.authoring.handles import Handle
from weft.authoring.policies import Duration, since_to_ms
from weft.authoring.schedules import Schedules
from weft.core.durations import duration_ms
from weft.core.ids import RunId
from weft.errors import NotRunning, UsageError
from weft.extras import require
from weft.ports.store import RunQuery
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.orders import StartOrder
from weft.runtime.schedules import ScheduleService
from weft.runtime.service import RunService
from weft.steps.codec import Codec
from weft.stores import blobs_url, open_store

if TYPE_CHECKING:
    from weft.authoring.remote import Remote


class Client:
    """A client that starts, finds and steers runs hosted elsewhere: ``async with weft.Client(url) as client``.

    ``url`` is the URL of a store or of a server (``http://…``). For a server, ``key`` or ``WEFT_API_KEY`` is the API
    key.
    """

    def __init__(self, url: str, *, key: str | None = None) -> None:
        self.url = url
        self._is_server = url.startswith(("http://", "https://"))
        if key is not None and not self._is_server:
            raise UsageError("A key is only for a server, but this is the URL of a store.", hint="Omit the key.")
        self._key = key
        self._service: RunService | None = None
        self._remote: Remote | None = None

    async def __aenter__(self) -> Self:
        if self._is_server:
            require("http", "A client of a server")
            from weft.authoring.remote import Remote  # noqa: PLC0415

            self._remote = Remote(self.url, self._key)
            return self
        store = open_store(self.url, blobs=blobs_url())
        await store.open()
        self._service = RunService(store, SystemClock(), TimeIds())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._service is not None:
            await self._service.store.close()
            self._service = None
        if self._remote is not None:
            await self._remote.close()
            self._remote = None

    @property
    def service(self) -> RunService:
        """How this client reaches runs in a store. Raises NotRunning outside ``async with``."""
        if self._service is None:
            raise NotRunning("The client is not open.", hint="Write: async with weft.Client(url) as client: ...")
        return self._service

    async def start(
        self,
        workflow: str,
        input: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        version: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
    ) -> Handle[Any]:
        """Start a run on any host that has this workflow. ``version`` may also be the tag of a graph.

        The run is ``pending`` until a host begins it. If its input has the wrong type, the run fails.
        """
        order = StartOrder(
            workflow=workflow,
            input=input or {},
            version=version,
            id=id,
            existing=existing,
            attributes=attributes or {},
            delay_ms=duration_ms(delay) if delay is not None else 0,
        )
        if self._remote is not None:
            return await self._remote.start(order)
        started = await self.service.start(order)
        return Handle(self.service, started.id, Codec.of(Any))

    async def plan(self, *goals: str, given: Mapping[str, Any] | Iterable[str] = ()) -> Plan:
        """Return the plan for these goals, with the steps that are registered in the store.

        Raises:
            UnknownStep: a goal is not registered there.
            BadPlan: no goals are given.
        """
        if self._remote is not None:
            return await self._remote.plan(goals, given)
        group = Group()
        stored = StoredCatalogue(self.service.store.definitions, self.service.clock)
        await stored.refresh()
        group.registered.learn_steps(stored.steps)
        return group.plan(*goals, given=given)

    @property
    def schedules(self) -> Schedules:
        """The schedules of the store or server."""
        if self._remote is None:
            return Schedules(lambda: ScheduleService(self.service), self.get)
        from weft.authoring.remote_schedules import RemoteSchedules  # noqa: PLC0415

        remote = RemoteSchedules(self._remote)
        return Schedules(lambda: remote, self.get)

    def get(self, id: str) -> Handle[Any]:
        """Return the handle of a run."""
        if self._remote is not None:
            return self._remote.get(id)
        return Handle(self.service, RunId(id), Codec.of(Any))

    async def list(
        self,
        *,
        workflow: str | None = None,
        status: str | None = None,
        since: datetime | timedelta | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Handle[Any]]:
        """List runs, newest first."""
        if self._remote is not None:
            everything = RunQuery(workflow=workflow, status=status, since=since_to_ms(since), where=where or {})
            async for handle in self._remote.list(everything):
                yield handle
            return
        after: str | None = None
        while True:
            query = RunQuery(workflow=workflow, status=status, since=since_to_ms(since), where=where or {}, after=after)
            page = await self.service.search(query)
            for row in page.rows:
                yield self.get(row.id)
            after = page.cursor
            if after is None:
                return
