"""The state of the installation: its store, its hosts, and what this process did in the last hour."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import msgspec
from msgspec import Meta

from weft.ports.wals import Loss, LossReason
from weft.server import views
from weft.server.request import ApiCall
from weft.server.series import STEP_SECONDS, SeriesName
from weft.stores.hot.takeover import loss_sentence


class LossView(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a dead host that are missing, or may be."""

    wal: int
    """The number of the write-ahead log that had them."""
    host: str
    at: views.Moment
    """When another host found out."""
    reason: LossReason
    batches: int
    """The least number of batches that are missing."""
    runs: Sequence[str]
    """The runs that went on from an earlier event, or may have; at most 1,000."""
    text: str


class StatusView(msgspec.Struct, frozen=True, kw_only=True):
    """The store, and the work that waits."""

    store: str
    kind: str
    """``sqlite``, ``postgres`` or ``memory``."""
    schema: int
    size_bytes: int | None
    version: str
    """The version of Weft that answers."""
    now: views.Moment
    hosts: int
    """How many living hosts there are."""
    gone: int
    """How many hosts are gone whose work nobody has taken over yet."""
    oldest_seconds: float
    """How long the oldest work has waited for a slot or for memory of this host."""
    queued_since: views.Moment | None
    """Since when the oldest shared task has waited in a queue."""
    trouble: str
    """Why the store does not answer; empty if it does."""
    losses: Sequence[LossView]
    """What hosts had acknowledged and was lost with Redis when they died, until somebody acknowledges it."""


class Acknowledged(msgspec.Struct, frozen=True):
    """How many losses are no longer shown."""

    losses: int


class SeriesQuery(views.Form, frozen=True, kw_only=True):
    """Which series to return; without names, all."""

    names: Annotated[list[SeriesName], Meta(max_length=10)] = msgspec.field(default_factory=list)


class SeriesView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the host that answers did in the last hour, oldest first, one value per step.

    ``runs`` and ``steps`` are per second: runs that began, and attempts that ended. ``commit_p99`` is in milliseconds,
    and null where nothing was committed.
    """

    host: str
    since: views.Moment
    step_seconds: int = STEP_SECONDS
    runs: list[float] = []
    steps: list[float] = []
    commit_p99: list[float | None] = []


async def status(call: ApiCall) -> StatusView:
    """Return the state of the installation."""
    runs = call.services.hosting()
    store = runs.store
    details = await store.details()
    hosts = await store.hosts.list_all()
    queued = [row.since for row in await store.tasks.queues() if row.since is not None]
    trouble = runs.trouble()
    return StatusView(
        store=store.url,
        kind=details.kind,
        schema=details.schema,
        size_bytes=details.size_bytes,
        version=version("weft"),
        now=views.required_time(runs.clock.now_ms()),
        hosts=sum(not host.gone for host in hosts),
        gone=sum(host.gone for host in hosts),
        oldest_seconds=await call.services.admission.backlog_seconds(),
        queued_since=views.api_time(min(queued, default=None)),
        trouble=trouble.message if trouble is not None else "",
        losses=[_loss_view(loss) for loss in await store.wals.losses()] if store.wals is not None else [],
    )


async def acknowledge_losses(call: ApiCall) -> Acknowledged:
    """Show the losses so far no longer."""
    wals = call.services.hosting().store.wals
    return Acknowledged(await wals.acknowledge_losses() if wals is not None else 0)


def _loss_view(loss: Loss) -> LossView:
    return LossView(
        wal=loss.wal,
        host=loss.host,
        at=views.required_time(loss.at),
        reason=loss.reason,
        batches=loss.batches,
        runs=loss.runs,
        text=loss_sentence(loss),
    )


async def series(call: ApiCall) -> SeriesView:
    """Return what this process did in the last hour."""
    names = set(call.query_as(SeriesQuery).names) or {"runs", "steps", "commit_p99"}
    runs = call.services.hosting()
    since, points = call.services.telemetry.series.points(runs.clock.now_ms())
    return SeriesView(
        host=runs.local.host if runs.local is not None else "",
        since=views.required_time(since),
        runs=[point.runs for point in points] if "runs" in names else [],
        steps=[point.steps for point in points] if "steps" in names else [],
        commit_p99=[point.commit_p99 for point in points] if "commit_p99" in names else [],
    )
