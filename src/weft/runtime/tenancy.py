"""Tenants: each has its own runs, and cannot name the runs of others.

The ids of a tenant's runs begin with the tenant's name (``@acme/order-7``), in the store and in the log; children
inherit it. The service of a tenant adds this prefix to every id on the way in and removes it on the way out, so a
tenant cannot express, and never finds, an id of another tenant. Blobs, streams and logs are reached only through a
run. A caller without a tenant is the operator of the whole installation, and sees full ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core import commands as c
from weft.core.ids import TENANT_MARK, Millis, RunId, RunUid, Seq
from weft.core.ledger import LedgerRow, run_of
from weft.errors import NotAllowed, UnknownWorkflow, UsageError
from weft.ports.blobs import Blobs
from weft.ports.budgets import Budgets
from weft.ports.definitions import Definitions
from weft.ports.retention import AuditEntry, Holds, Retention
from weft.ports.run_query import RunCount, RunQuery
from weft.ports.saved_views import SavedView, SavedViews
from weft.ports.starts import RuledStarts
from weft.ports.step_logs import LogQuery, LogTotals, StepLogs, StoredLine
from weft.ports.store import Append, Directory, KeyRow, Loaded, Mail, Outcome, Page, RunLog, RunRow, Store, StoredEvent
from weft.ports.streams import Chunk, NewChunk, Streams
from weft.ports.tags import Tag, TagKey, TagMove, Tags
from weft.ports.wals import Wals
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.offered_versions import sees_version
from weft.runtime.orders import StartOrder, check_run_id, pin_version
from weft.runtime.runs import Ending
from weft.runtime.service import RunService
from weft.runtime.start_support import StartOptions, StartResult
from weft.runtime.tags import OPERATOR
from weft.runtime.tenant_retention import TenantHolds, TenantRetention, full_id
from weft.runtime.version_refs import is_version_ref

NAMES_MAX = 500
"""Among how many workflows those of a tenant are found."""
EXAMINED_MAX = 10_000
"""Among how many of the newest runs of a workflow and status one of a tenant is found."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def check_tenant(name: str) -> str:
    """Check the name of a tenant and return it. It may be empty. Raises UsageError."""
    if name and _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name[:60]!r} cannot be the name of a tenant.",
            hint="Use 1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit.",
        )
    return name


def prefix_of(tenant: str) -> str:
    """Return the prefix of the ids of a tenant's runs."""
    return f"{TENANT_MARK}{check_tenant(tenant)}/"


def without_prefix(value: Any, tenant: str) -> Any:
    """Return JSON in which the runs of a tenant have the ids that the tenant uses. Logs and errors have full ids."""
    match value:
        case str():
            return re.sub(rf"(?<![\w.@-]){re.escape(prefix_of(tenant))}", "", value)
        case list():
            return [without_prefix(one, tenant) for one in value]
        case dict():
            return {name: without_prefix(one, tenant) for name, one in value.items()}
    return value


class TenantService(RunService):
    """A service for the runs of one tenant. Ids are those that the tenant uses, without the prefix."""

    def __init__(self, service: RunService, tenant: str) -> None:
        self._service = service
        self.tenant = tenant
        self.prefix = prefix_of(tenant)
        super().__init__(_TenantStore(service.store, self.prefix, tenant), service.clock, service.ids, service)  # type: ignore[arg-type]

    @property
    def whole_store(self) -> Store:
        return self._service.whole_store

    def with_prefix(self, run_id: str) -> RunId:
        """Return the id with the prefix. An id that already has it is unchanged: logs show full ids."""
        return full_id(self.prefix, run_id)

    def without_prefix(self, run_id: str) -> RunId:
        """Return the id without the prefix."""
        return RunId(run_id.removeprefix(self.prefix))

    # --- starts and commands, with full ids ---------------------------------------------------------------------

    async def start(self, order: StartOrder, catalogue: HostCatalogue | None = None) -> StartResult:
        if is_version_ref(order.workflow):
            order = await pin_version(order, self.tags)
        if order.version and not await sees_version(self, order.workflow, order.version):
            raise UnknownWorkflow(f'There is no version "{order.version[:60]}" of "{order.workflow}".')
        return await super().start(order, catalogue)

    async def create(self, start: c.StartRun, options: StartOptions) -> StartResult:
        full = msgspec.structs.replace(start, run_id=check_run_id(self.with_prefix(start.run_id)))
        started = await self._service.create(full, options)
        return msgspec.structs.replace(started, id=self.without_prefix(started.id))

    async def tell(self, run_id: RunId, command: c.Mailed, *, key: str | None = None) -> None:
        await self.wait_for_store(self.row(run_id), f"it is unknown whether there is a run {run_id!r}")
        await self._service.tell(self.with_prefix(run_id), command, key=key)

    def stored_id(self, run_id: str) -> RunId:
        return self.with_prefix(run_id)

    async def write_run(self, run: Append) -> Outcome:
        return await self._service.write_run(run)

    async def write_together(self, batch: Sequence[Append], entry: AuditEntry | None = None) -> Sequence[Outcome]:
        full = None if entry is None else msgspec.structs.replace(entry, run=self.with_prefix(entry.run))
        return await self._service.write_together(batch, full)

    async def ending(self, run_id: RunId, *, timeout: float | None = None) -> Ending:
        await self.row(run_id)
        return await self._service.ending(self.with_prefix(run_id), timeout=timeout)

    # --- reads ----------------------------------------------------------------------------------------------------

    async def search(self, query: RunQuery) -> Page:
        return await self.store.directory.search(query)

    async def _row_or_none(self, run_id: RunId) -> RunRow | None:
        return await self.store.directory.find(run_id)


class _TenantStore:
    """The parts of a store that the service of a tenant needs. None of them lists data of other tenants."""

    def __init__(self, store: Store, prefix: str, tenant: str) -> None:
        self.url = "this server"
        self.offset_ms = 0
        """The clock of the service has it already."""
        self.directory: Directory = _TenantDirectory(store.directory, prefix)  # type: ignore[assignment]
        self.log: RunLog = _TenantLog(store.log, self.directory)  # type: ignore[assignment]
        self.blobs: Blobs = store.blobs
        self.definitions: Definitions = store.definitions
        self.retention: Retention = TenantRetention(store.retention, self.directory, prefix)  # type: ignore[assignment]
        self.holds: Holds = TenantHolds(store.holds, self.directory, prefix)
        self.tags: Tags = _TenantTags(store.tags, tenant)
        self.streams: Streams = _TenantStreams(store.streams, self.directory)
        self.step_logs: StepLogs = _TenantStepLogs(store.step_logs, self.directory)  # type: ignore[assignment]
        self.saved_views: SavedViews = _TenantViews(store.saved_views, tenant)
        self.starts: RuledStarts = _TenantStarts(store.starts, self.directory)  # type: ignore[assignment]
        self.budgets: Budgets = _TenantBudgets(store.budgets, self.directory)
        self.wals: Wals | None = None if store.wals is None else _TenantWals(store.wals)  # type: ignore[assignment]


class _TenantWals:
    """Asks hosts to bring what they have of a run into the store, and shows nothing."""

    def __init__(self, wals: Wals) -> None:
        self.ask_to_drain = wals.ask_to_drain


class _TenantDirectory:
    """Finds runs of one tenant."""

    def __init__(self, directory: Directory, prefix: str) -> None:
        self._directory = directory
        self._prefix = prefix

    async def find(self, id: RunId) -> RunRow | None:
        return self._visible_row(await self._directory.find(full_id(self._prefix, id)))

    async def row(self, uid: RunUid) -> RunRow | None:
        return self._visible_row(await self._directory.row(uid))

    async def key(self, uid: RunUid, key: str) -> KeyRow | None:
        return await self._directory.key(uid, key) if await self.row(uid) is not None else None

    async def search(self, query: RunQuery) -> Page:
        wanted = msgspec.structs.replace(query, id_prefix=full_id(self._prefix, query.id_prefix or ""))
        page = await self._directory.search(wanted)
        return Page([row for row in map(self._visible_row, page.rows) if row is not None], page.cursor)

    async def count(self, queries: Sequence[RunQuery], *, limit: int) -> Sequence[RunCount]:
        wanted = [
            msgspec.structs.replace(query, id_prefix=full_id(self._prefix, query.id_prefix or "")) for query in queries
        ]
        return await self._directory.count(wanted, limit=limit)

    async def workflows(self, prefix: str = "", *, limit: int) -> Sequence[str]:
        """Return the workflows of which the tenant has runs."""
        names = await self._directory.workflows(prefix, limit=NAMES_MAX)
        counts = await self.count([RunQuery(workflow=name, scan=EXAMINED_MAX) for name in names], limit=1)
        return [name for name, found in zip(names, counts, strict=True) if found.count][:limit]

    async def open_versions(self, id_prefix: str = "") -> Mapping[tuple[str, str], int]:
        return await self._directory.open_versions(full_id(self._prefix, id_prefix))

    async def counts(self) -> Mapping[str, int]:
        raise NotAllowed("Only the operator may count all runs.")

    def _visible_row(self, row: RunRow | None) -> RunRow | None:
        """Return the row as the tenant sees it; None if it belongs to another tenant."""
        if row is None or not row.id.startswith(self._prefix):
            return None
        return msgspec.structs.replace(row, id=RunId(row.id.removeprefix(self._prefix)))


class _TenantTags:
    """Reads the tags of one tenant and of the operator, and changes those of the tenant."""

    def __init__(self, tags: Tags, tenant: str) -> None:
        self._tags = tags
        self._tenant = tenant

    async def get(self, key: TagKey) -> Tag | None:
        return await self._tags.get(key) if key.tenant in self._readable else None

    async def find(self, tenant: str, workflow: str | None = None) -> Sequence[Tag]:
        return await self._tags.find(tenant, workflow) if tenant in self._readable else ()

    async def moves(self, key: TagKey, *, upto: int | None = None, limit: int = 100) -> Sequence[TagMove]:
        return await self._tags.moves(key, upto=upto, limit=limit) if key.tenant in self._readable else ()

    async def write(self, tag: Tag, move: TagMove | None = None) -> bool:
        return tag.key.tenant == self._tenant and await self._tags.write(tag, move)

    @property
    def _readable(self) -> tuple[str, str]:
        return OPERATOR, self._tenant


class _TenantViews:
    """The saved views of one tenant."""

    def __init__(self, views: SavedViews, tenant: str) -> None:
        self._views = views
        self._tenant = tenant

    async def put(self, view: SavedView) -> None:
        if view.tenant == self._tenant:
            await self._views.put(view)

    async def list(self, tenant: str) -> Sequence[SavedView]:
        return await self._views.list(self._tenant) if tenant == self._tenant else ()

    async def remove(self, tenant: str, name: str) -> bool:
        return tenant == self._tenant and await self._views.remove(self._tenant, name)


class _TenantStarts:
    """Reads the rules about starts. Starts go through the service of the operator, with full ids."""

    def __init__(self, starts: RuledStarts, directory: Directory) -> None:
        self._directory = directory
        self.rule = starts.rule
        self._starts = starts

    async def with_slot(self, slot: str) -> Mapping[RunUid, RunId]:
        found = [await self._directory.row(uid) for uid in await self._starts.with_slot(slot)]
        return {run.uid: run.id for run in found if run is not None}


class _TenantLog:
    """Reads the logs of one tenant's runs; any other run has none."""

    def __init__(self, log: RunLog, directory: Directory) -> None:
        self._log = log
        self._directory = directory

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        return await self._log.load(uid, fold=fold) if await self._directory.row(uid) is not None else None

    async def events(self, uid: RunUid, *, after: Seq, limit: int) -> Sequence[StoredEvent]:
        if await self._directory.row(uid) is None:
            return ()
        return await self._log.events(uid, after=after, limit=limit)

    async def keys(self, uid: RunUid) -> Sequence[KeyRow]:
        return await self._log.keys(uid) if await self._directory.row(uid) is not None else ()

    async def inbox(self, uid: RunUid) -> Sequence[Mail]:
        return await self._log.inbox(uid) if await self._directory.row(uid) is not None else ()

    async def refers_to(self, uid: RunUid, digest: str) -> bool:
        return await self._directory.row(uid) is not None and await self._log.refers_to(uid, digest)


class _TenantStepLogs:
    """Reads what steps of one tenant's runs printed; any other run has nothing."""

    def __init__(self, logs: StepLogs, directory: Directory) -> None:
        self._logs = logs
        self._directory = directory

    async def read(self, uid: RunUid, query: LogQuery) -> Sequence[StoredLine]:
        return await self._logs.read(uid, query) if await self._directory.row(uid) is not None else ()

    async def totals(self, uid: RunUid) -> LogTotals:
        return await self._logs.totals(uid) if await self._directory.row(uid) is not None else LogTotals()


class _TenantBudgets:
    """Reads what one tenant's runs have spent; any other run has spent nothing."""

    def __init__(self, budgets: Budgets, directory: Directory) -> None:
        self._budgets = budgets
        self._directory = directory

    async def read(self, scopes: Sequence[str]) -> Sequence[LedgerRow]:
        runs = {run_of(scope) for scope in scopes}
        own = {uid for uid in runs if await self._directory.row(RunUid(uid)) is not None}
        return await self._budgets.read([scope for scope in scopes if run_of(scope) in own])

    async def forget(self, *, ended_before: Millis) -> int:
        return await self._budgets.forget(ended_before=ended_before)


class _TenantStreams:
    """Reads the output of one tenant's runs; any other run has none."""

    def __init__(self, streams: Streams, directory: Directory) -> None:
        self._streams = streams
        self._directory = directory

    async def read(self, uid: RunUid, stream: str, *, after: int, limit: int) -> Sequence[Chunk]:
        if await self._directory.row(uid) is None:
            return ()
        return await self._streams.read(uid, stream, after=after, limit=limit)

    async def write(self, chunks: Sequence[NewChunk]) -> None:
        own = {uid for uid in {chunk.uid for chunk in chunks} if await self._directory.row(uid) is not None}
        await self._streams.write([chunk for chunk in chunks if chunk.uid in own])

    async def lengths(self, uid: RunUid) -> Mapping[str, int]:
        return await self._streams.lengths(uid) if await self._directory.row(uid) is not None else {}
