"""The app: steps and workflows, the store of their runs, and the host that runs them in this process."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from weft.agents.budget import Budget, limits_of
from weft.authoring.app_catalogue import AppCatalogue
from weft.authoring.app_host import AppHost
from weft.authoring.blocking.app import BlockingApp
from weft.authoring.blocking.calls import LoopCalls, is_loop_running
from weft.authoring.bulk import Bulk, bulk_order
from weft.authoring.goals import Goal
from weft.authoring.handles import Handle
from weft.authoring.import_time import refuse_import_time
from weft.authoring.live_runs import change_to_try, check_runs, service_of
from weft.authoring.named_versions import NamedVersion
from weft.authoring.not_running import not_running
from weft.authoring.notebooks import NotebookHost, in_notebook
from weft.authoring.notices import Notices
from weft.authoring.open_resources import OpenResources
from weft.authoring.policies import Duration
from weft.authoring.registrar import Registrar
from weft.authoring.registrations import Registrations
from weft.authoring.runnable import Invocation, Runnable
from weft.authoring.schedules import Schedules
from weft.authoring.since import since_to_ms
from weft.authoring.webhooks import DeclaredWebhooks
from weft.authoring.workflow_versions import Workflows
from weft.core.durations import duration_ms
from weft.core.ids import RunId
from weft.core.run_rules import read_run_rules
from weft.errors import Corrupt, LoopRunning, NotFound, UsageError, WeftError
from weft.extras import require
from weft.observe.diff import Diff, DiffService
from weft.observe.live_check import LiveReport, OpenRuns
from weft.ports.run_query import RunQuery
from weft.runtime.bulk import BulkService
from weft.runtime.orders import StartOrder
from weft.runtime.project_settings import project_settings
from weft.runtime.schedules import ScheduleService
from weft.runtime.service import RunService
from weft.runtime.start_support import StartResult
from weft.runtime.version_refs import is_version_ref
from weft.runtime.versions import VersionService
from weft.settings import DEFAULT_URL, store_url
from weft.steps.codec import Codec
from weft.stores import RedisUse, blobs_url, named_redis, open_store, redis_use

if TYPE_CHECKING:
    from weft.runtime.bundles.importer import Imported
    from weft.runtime.bundles.service import BundleService
    from weft.server.api import Api

R = TypeVar("R")
Call = Coroutine[Any, Any, R]

DOCUMENTED = frozenset(
    (  # noqa: SIM905
        "agent bulk check_live diff export get goal graph import_ include lifespan list model move on pipeline plan "
        "resource router run schedule schedules start step steps sync url workflow workflows"
    ).split()
)


class App(Registrar):
    """An application: steps and workflows, and the store that keeps their runs. Creating one does no I/O."""

    def __init__(
        self,
        url: str | None = None,
        *,
        durability: Literal["full", "fast"] = "full",
        replay: Literal["checked", "tolerant"] = "checked",
        tree_depth: int = 32,
        tree_runs: int = 20_000,
        policy: str | Path | Mapping[str, Any] | None = None,
        redis: str | None = None,
        hot: str | None = None,
    ) -> None:
        super().__init__(Registrations(app=self))
        self.registered.policy.declare(policy)
        if durability not in ("full", "fast"):
            raise UsageError(f"durability={durability!r} is not one of full, fast.")
        if replay not in ("checked", "tolerant"):
            raise UsageError(f"replay={replay!r} is not one of checked, tolerant.")
        self._limits = (tree_depth, tree_runs)
        if min(self._limits) < 1:
            raise UsageError("tree_depth and tree_runs must be at least 1.")
        self._url = url
        self.redis_names = named_redis(redis, hot)
        """The Redis server and the policy of the hot path that the code names."""
        self._durability = durability
        self.is_tolerant = replay == "tolerant"
        """Whether other arguments than those in the log are only reported on replay."""
        self._hosted = 0
        self._steps_held = False
        self._service: RunService | None = None
        self._host: AppHost | None = None
        self._webhooks = DeclaredWebhooks(self.registered)
        self._catalogue: Callable[[Registrations], AppCatalogue] = AppCatalogue
        self._router: Api | None = None
        self._sync = BlockingApp(self)
        self._notebook = NotebookHost(self)
        self.notices: type[Notices] = Notices
        """The messages of ``run``; the command line prints more of them."""

    def __dir__(self) -> list[str]:
        """Offer only the documented names for completion. The rest is for Weft's own modules."""
        return [name for name in super().__dir__() if name in DOCUMENTED or name.startswith("_")]

    @property
    def url(self) -> str:
        """The URL of the store: as given, else WEFT_URL, else [tool.weft] url in pyproject.toml, else sqlite:///weft.db."""
        return self._url or store_url() or DEFAULT_URL

    @url.setter
    def url(self, url: str) -> None:
        """Use another store than the one in the code, as the option ``--url`` of the command line does."""
        self._url = url

    @property
    def redis(self) -> RedisUse | None:
        """The Redis server that stands beside the store, and what it is for. Raises UsageError."""
        return redis_use(*self.redis_names, store=self.url)

    def blobs(self) -> Callable[[str], bytes | None] | None:
        """Return a function that reads blobs from the store; None for a store in memory, which has none yet."""
        return None if self.url.startswith("memory:") else self.blob_content

    def blob_content(self, reference: str) -> bytes | None:
        """Read the blob of a reference in a document (``cas://sha256:…``) from the store; None if it is not there.

        The store is opened in a separate thread for each read. This happens only for documents with references.
        """

        async def read() -> bytes | None:
            store = open_store(self.url, blobs=blobs_url())
            await store.open()
            try:
                return await store.blobs.get(reference.removeprefix("cas://").removeprefix("sha256:"))
            except (NotFound, Corrupt):
                return None
            finally:
                await store.close()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, read()).result()

    # --- the catalogue of the host --------------------------------------------------------------------------------

    def catalogue(self) -> AppCatalogue:
        """Return the catalogue that is passed to the host."""
        return self._catalogue(self.registered)

    def host_only(self, catalogue: Callable[[Registrations], AppCatalogue]) -> None:
        """Host only the part of the app that this catalogue has."""
        self._catalogue = catalogue

    # --- hosting --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Host the engine in this process. It recovers runs, works on them, and is drained at the end."""
        if self._host is not None:
            self._host.calls.refuse_elsewhere()
        self._hosted += 1
        if self._hosted > 1:
            return self
        try:
            await self._open()
        except BaseException as error:
            host, self._host, self._service = self._host, None, None
            self._hosted = 0
            if host is not None:
                host.refuse_terminated(error)
            raise
        finally:
            self._steps_held = False
        return self

    async def _open(self) -> None:
        self._webhooks.declare()
        settings = project_settings(
            tolerant=self.is_tolerant,
            heartbeat_thread=True,
            steps_held=self._steps_held,
            tree_depth_max=self._limits[0],
            tree_runs_max=self._limits[1],
        )
        catalogue = self.catalogue()
        self._host = host = AppHost(self.url, self._durability, settings, self.redis)
        await host.open()
        self._service = host.service  # steps of recovered runs may start runs before all of them are recovered
        await host.start(catalogue, catalogue.queues() or self.registered.queue_names(), self._webhooks)

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._hosted -= 1
        if self._hosted or self._host is None:
            return
        host, self._host, self._service = self._host, None, None
        await host.close(error)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Any = None) -> AsyncGenerator[None]:
        """Host the engine while a web application runs: ``FastAPI(lifespan=app.lifespan)``."""
        async with self:
            yield

    @property
    def router(self) -> Api:
        """The HTTP API as an ASGI application: ``api.mount("/weft", app.router)``."""
        if self._router is None:
            require("server", "The HTTP API")
            from weft.authoring.served_app import Served  # noqa: PLC0415
            from weft.server.api import Api  # noqa: PLC0415

            self._router = Api(Served(self.registered), lambda: self.service)
        return self._router

    def bind(self, service: RunService | None) -> RunService | None:
        """Use another run service, for example that of a simulated world. Returns the previous one."""
        before, self._service = self._service, service
        return before

    @property
    def service(self) -> RunService:
        """The run service of the host. Raises NotRunning."""
        if self._service is None:
            not_running()
        return self._service

    @property
    def sync(self) -> BlockingApp:
        """The app for programs without an event loop: ``app.sync.start(order("o-1")).result()``, in any thread."""
        return self._sync

    @property
    def calls(self) -> LoopCalls | None:
        """The blocking calls on the event loop that hosts the app; None if it is not hosted in this process."""
        return self._host.calls if self._service is not None and self._host is not None else None

    def open_resources(self) -> OpenResources | None:
        """Return the resources that are open; None if this process does not host the app."""
        return self._host.resources if self._host is not None else None

    @property
    def schedules(self) -> Schedules:
        """The schedules of the store: declared in code, or made with ``add``. They need a running engine."""
        return Schedules(lambda: ScheduleService(self.service), self.get)

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

    def _bundles(self) -> BundleService:
        from weft.runtime.bundles.service import BundleService  # noqa: PLC0415 - few programs need it

        return BundleService(self.service)

    @property
    def workflows(self) -> Workflows:
        """The versions of workflows in the store, and their tags. They need a running engine."""
        return Workflows(lambda: VersionService(self.service))

    # --- running --------------------------------------------------------------------------------------------------

    @overload
    def run(self, call: Call[R], /, *, id: str | None = None) -> R: ...
    @overload
    def run(self, workflow: Runnable[R], input: Mapping[str, Any] = ..., /, *, id: str | None = None) -> R: ...
    @overload
    def run(self, workflow: str, input: Mapping[str, Any] = ..., /, *, id: str | None = None) -> Any: ...
    def run(self, call: Any, input: Mapping[str, Any] | None = None, /, *, id: str | None = None) -> Any:
        """Start or continue a run, wait for it, and return its result. This blocks and hosts the engine meanwhile."""
        try:
            refuse_import_time("app.run()")
            if is_loop_running():
                raise LoopRunning(  # noqa: TRY301 - the call is closed below
                    "app.run() starts its own event loop and one is already running (Jupyter, FastAPI?).",
                    hint="Write: handle = await app.start(order(...)); await handle.result()",
                )
        except BaseException:
            if inspect.iscoroutine(call):
                call.close()
            raise
        invocation = self._invocation(call, input)
        notices = self.notices(self.url, named=id is not None)
        try:
            return asyncio.run(self._run(invocation, id, notices))
        except KeyboardInterrupt:
            notices.interrupted()
            sys.exit(130)
        except SystemExit:
            notices.interrupted()
            raise
        except asyncio.CancelledError:
            raise hosting_cancelled() from None

    async def _run(self, invocation: Invocation, run_id: str | None, notices: Notices) -> Any:
        self._steps_held = True  # steps may print, so they wait until the notice about the run is printed
        async with self:
            service = self.service
            started = await self.launch(invocation, run_id)
            try:
                await notices.begin(service, started.id, created=started.created)
                assert service.work is not None, "the app is hosted here"
                service.work.release_steps()
                await notices.until_over(service, started.uid)
                return await self._run_of(started, invocation).result()
            except asyncio.CancelledError:
                assert self._host is not None, "the app is hosted here"
                await notices.stop(service, started.id, self._host.stop)
                raise

    @overload
    async def start(
        self,
        call: Call[R],
        /,
        *,
        id: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        queue: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> Handle[R]: ...
    @overload
    async def start(
        self,
        workflow: Runnable[R],
        input: Mapping[str, Any] = ...,
        /,
        *,
        id: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        queue: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> Handle[R]: ...
    @overload
    async def start(
        self,
        workflow: str,
        input: Mapping[str, Any] = ...,
        /,
        *,
        id: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        queue: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> Handle[Any]: ...
    async def start(
        self,
        call: Any,
        input: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        existing: Literal["attach", "refuse"] = "attach",
        queue: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        budget: Budget | None = None,
        run_policies: Mapping[str, Any] | None = None,
    ) -> Any:
        """Start a run, or find the one with this id and input, and return its handle. The run is durable by then.

        A name may say which version is meant: ``"order:live"``, ``"order:live~1"`` (one move back), ``"order@3f2a91"``.
        ``budget`` is what the run, with everything below it, may spend, instead of what its workflow declares.
        ``run_policies`` are rules for this run alone: ``allowed_transitions``, ``max_hops`` and ``deadline_at``.
        """
        if self._host is None or not self._host.calls.is_here():
            await self._host_in_notebook(call)
        wait = duration_ms(delay) if delay is not None else 0
        invocation = self._invocation(call, input)
        options = {"existing": existing, "queue": queue, "attributes": attributes or {}, "priority": priority}
        rules = read_run_rules(run_policies) if run_policies is not None else None
        started = await self.launch(invocation, id, delay_ms=wait, budget=limits_of(budget), rules=rules, **options)
        return self._run_of(started, invocation)

    async def _host_in_notebook(self, call: object = None) -> None:
        """Host the app if this is a notebook and nothing hosts it yet. Elsewhere, raise NotRunning then."""
        try:
            if self._host is not None:
                if not (in_notebook() and self._host.calls.is_over()):
                    self._host.calls.refuse_elsewhere()
                    return
                self._hosted, self._host, self._service = 0, None, None  # its loop was closed, and all with it
            if self._service is None:
                if not in_notebook():
                    not_running()
                await self._notebook.open()
        except BaseException:
            if inspect.iscoroutine(call):
                call.close()
            raise

    def _invocation(self, call: Any, input: Mapping[str, Any] | None) -> Invocation:
        if isinstance(call, str) and is_version_ref(call):
            named = NamedVersion(call)
            return Invocation(named, named.given(input or {}))
        return self.registered.invocation(call, input)

    def _run_of(self, started: StartResult, invocation: Invocation) -> Handle[Any]:
        return Handle(self.service, started.id, invocation.workflow.result)

    def launch(self, invocation: Invocation, run_id: str | None, **options: Any) -> Coroutine[Any, Any, StartResult]:
        """Start the run of a call, or find the one with this id. Not a coroutine itself: every start passes here.

        ``options`` are fields of ``StartOrder``.
        """
        workflow, service = invocation.workflow, self.service
        if isinstance(workflow, NamedVersion):
            return service.start(workflow.order(invocation, id=run_id, **options))
        name, version = workflow.name, workflow.version
        known = self.registered.known(name, version)
        own = known is None and isinstance(workflow, Goal) and workflow.group is self.registered
        if known is None and not own:
            raise UsageError(f"The workflow {name} belongs to another app.", hint="app.include(group)")
        if options.get("budget") is None:
            options["budget"] = workflow.budget
        order = StartOrder(
            workflow=name,
            version=version,
            goals=workflow.goals if known is None and isinstance(workflow, Goal) else (),
            input=invocation.given,
            id=run_id,
            **options,
        )
        return service.start(order, self.catalogue() if service.local is None else None)

    async def run_and_wait(self, invocation: Invocation) -> Any:
        """Start a run and return its result."""
        await self._host_in_notebook()
        return await self._run_of(await self.launch(invocation, None), invocation).result()

    # --- finding --------------------------------------------------------------------------------------------------

    @overload
    def get(self, id: str, workflow: Runnable[R]) -> Handle[R]: ...
    @overload
    def get(self, id: str, workflow: str | None = None) -> Handle[Any]: ...
    def get(self, id: str, workflow: Any = None) -> Handle[Any]:
        """Return the handle of a run. With ``workflow``, the result has the type that the workflow returns."""
        found = self.registered.runnable_named(workflow) if isinstance(workflow, str) else workflow
        return Handle(self.service, RunId(id), found.result if found is not None else Codec.of(Any))

    async def list(
        self,
        *,
        workflow: str | Runnable[Any] | None = None,
        status: str | None = None,
        since: datetime | timedelta | str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Handle[Any]]:
        """List runs, newest first."""
        name = workflow.name if isinstance(workflow, Runnable) else workflow
        after: str | None = None
        while True:
            query = RunQuery(workflow=name, status=status, since=since_to_ms(since), where=where or {}, after=after)
            page = await self.service.search(query)
            for row in page.rows:
                yield Handle(self.service, row.id, self._result_of(row.workflow, row.version))
            after = page.cursor
            if after is None:
                return

    async def bulk(
        self,
        verb: str,
        *ids: str,
        workflow: str | Runnable[Any] | None = None,
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
        name = workflow.name if isinstance(workflow, Runnable) else workflow
        filters = {"workflow": name, "status": status, "parent": parent, "where": where}
        order = bulk_order(verb, ids, since=since, options=options, **filters)
        plan = await BulkService(self.service).plan(order)
        return Bulk(lambda: BulkService(self.service), plan, self.run_handle)

    async def diff(self, a: str, b: str, *, at_a: int | None = None, at_b: int | None = None) -> Diff:
        """Compare two runs, each up to an event, or two versions (``order@3f2a``, ``order:live``) or files.

        Raises NotFound, Refused, UsageError.
        """
        return await DiffService(self.service).diff(a, b, at_a=at_a, at_b=at_b)

    async def check_live(
        self,
        *,
        workflow: str | Runnable[Any] | None = None,
        status: str | None = None,
        since: datetime | timedelta | str | None = None,
        sample: int = 0,
        to: str | Mapping[str, Any] | None = None,
        replan: bool = False,
        save: str | Path | None = None,
    ) -> LiveReport:
        """Check every open run in the store against this code: does it fit what they have recorded?

        It reads only, and needs no engine here: use it before a deploy. With ``sample``, only so many of the newest and
        oldest are checked of runs that look alike. It cannot see what a run would do next.

        ``to`` tries a patch on each run of a workflow: a version or tag, a patch, or a graph document. ``replan`` tries
        to plan goal runs again. ``save`` writes one bundle per group to a folder, for ``weft replay``.
        """
        name = workflow.name if isinstance(workflow, Runnable) else workflow
        query = OpenRuns(workflow=name, status=status, since=since_to_ms(since), sample=sample)
        change, query = change_to_try(to, query, replan=replan)
        async with contextlib.AsyncExitStack() as opened:
            service = self._service
            if service is None:
                service = await opened.enter_async_context(service_of(self.url))
            report = await check_runs(self.catalogue(), service, query, change=change, tolerant=self.is_tolerant)
            if save is None:
                return report
            from weft.authoring.live_bundles import save_groups  # noqa: PLC0415 - few programs need it

            return await save_groups(service, report, Path(save))

    def run_handle(self, id: str, result: Codec[R]) -> Handle[R]:
        """Return the handle of a run whose result has this type."""
        return Handle(self.service, RunId(id), result)

    def _result_of(self, workflow: str, version: str) -> Codec[Any]:
        found = self.registered.known(workflow, version)
        return found.result if found is not None else Codec.of(Any)


def hosting_cancelled() -> WeftError:
    """Return the error for a host whose main task was cancelled by other code in the process."""
    return WeftError(
        "The task that hosts the engine was cancelled, so this host stopped.",
        hint="Does a step cancel tasks that it did not create? Start the program again; its runs continue.",
    )
