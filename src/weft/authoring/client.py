"""A client for runs that another process hosts: through the store that both share, or through its API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from weft.agents.budget import Budget, limits_of
from weft.authoring.blocking.client import BlockingClient
from weft.authoring.bulk import Bulk, BulkAccess, bulk_order
from weft.authoring.goals import Plan
from weft.authoring.group import Group
from weft.authoring.handles import Handle
from weft.authoring.policies import Duration
from weft.authoring.schedules import Schedules
from weft.authoring.since import since_to_ms
from weft.authoring.workflow_versions import Workflows
from weft.core.durations import duration_ms
from weft.core.ids import RunId
from weft.core.run_rules import read_run_rules
from weft.errors import NotRunning, UsageError
from weft.extras import require
from weft.observe.diff import Diff, DiffService
from weft.ports.run_query import RunQuery
from weft.runtime.bulk import BulkService
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.orders import StartOrder, check_priority
from weft.runtime.patch_limits import project_patch_limits
from weft.runtime.schedules import ScheduleService
from weft.runtime.service import RunService
from weft.runtime.versions import VersionService
from weft.steps.codec import Codec
from weft.stores import blobs_url, open_store, redis_hints

if TYPE_CHECKING:
    from weft.authoring.remote import Remote
    from weft.authoring.remote_bundles import RemoteBundles
    from weft.runtime.bundles.importer import Imported
    from weft.runtime.bundles.service import BundleService

R = TypeVar("R")


class Client:
    """A client that starts, finds and steers runs hosted elsewhere: ``async with weft.Client(url) as client``.

    ``url`` is the URL of a store or of a server (``http://…``). For a server, ``key``, ``WEFT_KEY`` or the file
    that ``WEFT_KEY_FILE`` names has the API key.
    """

    def __init__(self, url: str, *, key: str | None = None) -> None:
        self.url = url
        self._is_server = url.startswith(("http://", "https://"))
        if key is not None and not self._is_server:
            raise UsageError("A key is only for a server, but this is the URL of a store.", hint="Omit the key.")
        self._key = key
        self._service: RunService | None = None
        self._remote: Remote | None = None
        self._sync = BlockingClient(lambda: Client(url, key=key))

    async def __aenter__(self) -> Self:
        if self._is_server:
            require("http", "A client of a server")
            from weft.authoring.remote import Remote  # noqa: PLC0415

            self._remote = Remote(self.url, self._key)
            return self
        store = open_store(self.url, blobs=blobs_url(), redis=redis_hints())
        await store.open()
        self._service = RunService(store, SystemClock(), TimeIds(), limits=project_patch_limits())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._service is not None:
            await self._service.store.close()
            self._service = None
        if self._remote is not None:
            await self._remote.close()
            self._remote = None

    @property
    def sync(self) -> BlockingClient:
        """The client for programs without an event loop: ``with weft.Client(url).sync as client``, in any thread."""
        return self._sync

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
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> Handle[Any]:
        """Start a run on any host that has this workflow, in its hosted version or in ``version``.

        A name may say which version is meant: ``"order:live"``, ``"order:live~1"`` (one move back), ``"order@3f2a91"``.
        The run is ``pending`` until a host begins it. If its input has the wrong type, the run fails. ``budget`` takes
        the place of the one that the workflow declares. ``run_policies`` are rules for this run alone.
        """
        order = StartOrder(
            workflow=workflow,
            input=input or {},
            version=version,
            id=id,
            existing=existing,
            attributes=attributes or {},
            delay_ms=duration_ms(delay) if delay is not None else 0,
            priority=check_priority(priority),
            budget=limits_of(budget) if budget is not None else None,
            rules=read_run_rules(run_policies) if run_policies is not None else None,
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

    async def diff(self, a: str, b: str, *, at_a: int | None = None, at_b: int | None = None) -> Diff:
        """Compare two runs, each up to an event. Without a server also two versions or files. Raises NotFound."""
        if self._remote is not None:
            return await self._remote.diff(a, b, at_a=at_a, at_b=at_b)
        return await DiffService(self.service).diff(a, b, at_a=at_a, at_b=at_b)

    async def bulk(
        self,
        verb: str,
        *ids: str,
        workflow: str | None = None,
        status: str | None = None,
        since: datetime | timedelta | str | None = None,
        parent: str | None = None,
        where: Mapping[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> Bulk:
        """Count what a verb would do to these runs, or to those that the filter finds; ``apply`` of the answer does it.

        Raises:
            UsageError: there is no such verb or option, or neither ids nor a filter are given.
            LimitExceeded: these are too many runs.
        """
        filters = {"workflow": workflow, "status": status, "parent": parent, "where": where}
        order = bulk_order(verb, ids, since=since, options=options, **filters)
        return Bulk(self._bulk_access, await self._bulk_access().plan(order), self.run_handle)

    def _bulk_access(self) -> BulkAccess:
        if self._remote is None:
            return BulkService(self.service)
        from weft.authoring.remote_bulk import RemoteBulk  # noqa: PLC0415

        return RemoteBulk(self._remote)

    def run_handle(self, id: str, result: Codec[R]) -> Handle[R]:
        """Return the handle of a run whose result has this type."""
        return self._remote.get(id, result) if self._remote is not None else Handle(self.service, RunId(id), result)

    @property
    def schedules(self) -> Schedules:
        """The schedules of the store or server."""
        if self._remote is None:
            return Schedules(lambda: ScheduleService(self.service), self.get)
        from weft.authoring.remote_schedules import RemoteSchedules  # noqa: PLC0415

        remote = RemoteSchedules(self._remote)
        return Schedules(lambda: remote, self.get)

    async def export(
        self, id: str, path: str | Path, *, tree: bool = False, streams: bool = False, redact: Sequence[str] = ()
    ) -> None:
        """Write a run to a file, with ``tree`` all runs below it too: logs, definitions and blobs, without secrets.

        With ``streams`` also the output of steps. ``redact`` are JSON pointers into events, such as ``/input/card``,
        whose values are left out.
        """
        data = await self._bundles().export(id, tree=tree, streams=streams, redact=redact)
        await asyncio.to_thread(Path(path).write_bytes, data)

    async def move(self, id: str, path: str | Path, *, to: str = "", reason: str = "") -> None:
        """Move a run and all runs below it to another store: they end here, and ``import_`` adopts the file there.

        ``to`` says where it goes, for those who look for it here. If the file was lost, the same call writes it again.

        Raises Refused while work is in flight. Then pause the run, and move it when that work has ended.
        """
        data = await self._bundles().move(id, to=to, reason=reason)
        await asyncio.to_thread(Path(path).write_bytes, data)

    async def import_(self, path: str | Path, *, adopt: bool = False) -> Imported:
        """Read runs from a file that ``export`` wrote. They can be read and forked; nothing goes on with them.

        With ``adopt``, go on with runs that ``move`` wrote to the file, under the same ids.
        """
        return await self._bundles().import_(await asyncio.to_thread(Path(path).read_bytes), adopt=adopt)

    def _bundles(self) -> BundleService | RemoteBundles:
        if self._remote is None:
            from weft.runtime.bundles.service import BundleService  # noqa: PLC0415 - few programs need it

            return BundleService(self.service)
        from weft.authoring.remote_bundles import RemoteBundles  # noqa: PLC0415

        return RemoteBundles(self._remote)

    @property
    def workflows(self) -> Workflows:
        """The versions of workflows in the store or on the server, and their tags."""
        if self._remote is None:
            return Workflows(lambda: VersionService(self.service))
        from weft.authoring.remote_workflows import RemoteWorkflows  # noqa: PLC0415

        remote = RemoteWorkflows(self._remote)
        return Workflows(lambda: remote)

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
        since: datetime | timedelta | str | None = None,
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
