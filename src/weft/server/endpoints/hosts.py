"""The processes that work on the store, and the queues that they perform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from weft.core import values
from weft.observe.limit_views import LimitView, read_limit_views
from weft.ports.hosts import HostRow
from weft.ports.tasks import QueueLimits, QueueRow
from weft.runtime.worker_streams.names import check_queue
from weft.server import views
from weft.server.cursors import cut_page
from weft.server.request import ApiCall

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """A process that works on the store."""

    host: str
    address: str
    """The URL at which it answers requests; empty if it answers none."""
    machine: str
    pid: int | None
    since: views.Moment | None
    workflows: list[str]
    queues: list[str]
    runs: int
    """How many runs it owns."""
    tasks: int
    """How many shared tasks it has taken."""
    lease_seconds: float
    silent_seconds: float
    """Time since its last heartbeat."""
    gone: bool
    """Whether it is known to be gone, so that others take its runs over."""
    here: bool
    """Whether it is the process that answers this request."""


class HostList(msgspec.Struct, frozen=True):
    hosts: list[HostView]
    cursor: str | None


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """A queue of shared tasks, and its limits over all hosts. Null means no limit."""

    queue: str
    waiting: int
    running: int
    """How many tasks are in hand."""
    since: views.Moment | None
    """Since when the oldest of the waiting tasks has waited."""
    concurrency: int | None
    rate: int | None
    per_seconds: float
    priority: int
    stream: bool
    """Whether workers on a Redis stream perform its tasks. Then ``running`` tasks are published there."""
    performed_by: list[str]
    """The living hosts that perform tasks of this queue. Workers over HTTP and on streams are not among them."""


class QueueList(msgspec.Struct, frozen=True):
    queues: list[QueueView]
    cursor: str | None


class NewLimits(views.Form, frozen=True, kw_only=True):
    """The limits of a queue. Null means no limit; limits that are left out are removed."""

    concurrency: Count | None = None
    """How many tasks may be in hand at the same time."""
    rate: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    """How many tasks may be handed out in any ``per_seconds``."""
    per_seconds: Annotated[float, Meta(ge=0.001, le=366 * 86_400)] = 1.0
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0
    """Tasks of a queue with a higher priority are handed out first."""
    stream: bool = False
    """Whether workers on a Redis stream perform its tasks, and hosts leave them alone."""


class LimitedKeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a limit, with its tasks or runs."""

    key: str
    """Empty if the limit has no key."""
    waiting: int
    running: int
    since: views.Moment | None
    """Since when the oldest of those that wait has waited."""
    full: bool
    """Whether as many are under way as the limit allows."""


class LimitRow(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a step or workflow per key, over all hosts. Null means no limit."""

    kind: Literal["step", "workflow"]
    name: str
    concurrency: int | None
    rate: int | None
    per_seconds: float
    key: str
    """The key in CEL; empty if there is none, or if it is a function."""
    waiting: int
    running: int
    keys: list[LimitedKeyRow]
    """Up to 200 keys that have tasks or runs, those with the most waiting first."""


class LimitList(msgspec.Struct, frozen=True):
    limits: list[LimitRow]
    cursor: str | None


async def list_limits(call: ApiCall) -> LimitList:
    """Return a page of the limits of steps and workflows, with their keys."""
    query = call.query_as(views.PageQuery)
    page, cursor = cut_page(await read_limit_views(call.service.store.tasks), query.limit, query.cursor)
    return LimitList([_limit(one) for one in page], cursor)


def _limit(view: LimitView) -> LimitRow:
    return LimitRow(
        kind="workflow" if view.kind == "workflow" else "step",
        name=view.name,
        concurrency=view.limit.concurrency,
        rate=view.limit.rate,
        per_seconds=view.limit.per_ms / 1000,
        key=view.limit.key,
        waiting=view.waiting,
        running=view.running,
        keys=[
            LimitedKeyRow(
                key=one.key, waiting=one.waiting, running=one.running, since=views.api_time(one.since), full=one.is_full
            )
            for one in view.keys
        ],
    )


async def list_hosts(call: ApiCall) -> HostList:
    """Return a page of the hosts of the store."""
    query = call.query_as(views.PageQuery)
    page, cursor = cut_page(await call.service.store.hosts.list_all(), query.limit, query.cursor)
    local = call.service.local
    return HostList([_host(row, local is not None and row.host == local.host) for row in page], cursor)


def _host(row: HostRow, here: bool) -> HostView:  # noqa: FBT001 - a fact, not a choice
    about: Mapping[str, Any] = row.about
    return HostView(
        host=row.host,
        address=about.get("address", ""),
        machine=about.get("machine", ""),
        pid=about.get("pid"),
        since=views.api_time(about.get("since")),
        workflows=list(about.get("workflows", ())),
        queues=list(about.get("queues", ())),
        runs=row.runs,
        tasks=row.tasks,
        lease_seconds=row.lease_ms / 1000,
        silent_seconds=row.silent_ms / 1000,
        gone=row.gone,
        here=here,
    )


async def list_queues(call: ApiCall) -> QueueList:
    """Return a page of the queues that have tasks, limits or hosts."""
    query = call.query_as(views.PageQuery)
    page, cursor = cut_page(await _queues(call), query.limit, query.cursor)
    return QueueList(page, cursor)


async def limit_queue(call: ApiCall) -> QueueView:
    """Set the limits of a queue, for all hosts."""
    name, new = call.parameters["queue"], call.body_as(NewLimits)
    values.encode([name], what="the name of the queue has")
    limits = QueueLimits(
        concurrency=new.concurrency,
        rate=new.rate,
        per_ms=round(new.per_seconds * 1000),
        priority=new.priority,
        stream=new.stream,
    )
    check_queue(name, limits)
    await call.service.store.tasks.limit(name, None if limits.is_plain else limits)
    found = [one for one in await _queues(call) if one.queue == name]
    return found[0] if found else _queue(QueueRow(queue=name, waiting=0, running=0, limits=limits), [])


async def _queues(call: ApiCall) -> list[QueueView]:
    store = call.service.store
    rows = {row.queue: row for row in await store.tasks.queues()}
    hosts: dict[str, list[str]] = {}
    for host in await store.hosts.list_all():
        for queue in host.about.get("queues", ()) if not host.gone else ():
            hosts.setdefault(queue, []).append(host.host)
    return [
        _queue(rows.get(name) or QueueRow(queue=name, waiting=0, running=0, limits=QueueLimits()), hosts.get(name, []))
        for name in sorted(rows.keys() | hosts.keys())
    ]


def _queue(row: QueueRow, performed_by: list[str]) -> QueueView:
    return QueueView(
        queue=row.queue,
        waiting=row.waiting,
        running=row.running,
        since=views.api_time(row.since),
        concurrency=row.limits.concurrency,
        rate=row.limits.rate,
        per_seconds=row.limits.per_ms / 1000,
        priority=row.limits.priority,
        stream=row.limits.stream,
        performed_by=[] if row.limits.stream else performed_by,
    )
