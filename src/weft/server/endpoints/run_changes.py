"""What people have changed in a run, and the forks that lead to it and from it."""

from __future__ import annotations

import msgspec

from weft.core import events as e
from weft.core.ids import Seq
from weft.observe.changes import CHANGE_KINDS
from weft.observe.event_parts import EventPart, Unfolding
from weft.observe.event_records import read_records
from weft.observe.event_text import event_text
from weft.observe.fork_line import FORKS_MAX, read_fork_line
from weft.ports.store import RunRow
from weft.runtime.forks import ForkService
from weft.runtime.service import RunService
from weft.server import views
from weft.server.endpoints.run_views import AtQuery
from weft.server.endpoints.runs import requested_run
from weft.server.live.frames import event_view
from weft.server.request import ApiCall

FORK_EVENTS_MAX = 100
"""How many events after the common past of a fork are searched for the one that says who made it."""


class ChangeView(views.EventView, frozen=True, kw_only=True):
    """A change that somebody asked for: in a sentence, who, and why. ``rev`` is the number of a patch, else 0."""

    text: str
    by: str
    reason: str
    rev: int = 0
    base: str = ""
    """For a patch: the version before it, and below the one that it leads to."""
    version: str = ""


class ForkView(msgspec.Struct, frozen=True, kw_only=True):
    """A fork of the run, and the number of the last event that both runs share."""

    run: str
    seq: int
    at: views.Moment
    status: views.Status
    by: str
    reason: str


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What people have changed in a run, oldest first, and its newest forks, newest first."""

    changes: list[ChangeView]
    forked_from: views.ForkPoint | None
    forks: list[ForkView]


async def list_changes(call: ApiCall) -> Changes:
    """Return what people have changed in a run."""
    row = await requested_run(call)
    service = call.service
    at = call.query_as(AtQuery).at
    viewed, _ = await call.services.viewed.get_readable_until(service, row, at)
    found = {seq for kind in CHANGE_KINDS for seq in viewed.log.numbers_of(kind)}
    numbers = sorted(seq for seq in found if at is None or seq <= at)
    parts = await read_records(service, row, numbers, Unfolding())
    line = await read_fork_line(service, row)
    rows = await ForkService(service).forks(row, limit=FORKS_MAX)
    forks = [await _fork(service, one) for one in rows]
    return Changes(
        changes=[_change(part) for part in parts if event_view(part).kind in CHANGE_KINDS],
        forked_from=views.ForkPoint(line.original, line.seq) if line.original is not None else None,
        forks=[fork for fork in forks if at is None or fork.seq <= at],
    )


def _change(part: EventPart) -> ChangeView:
    view, event = event_view(part), part.event
    return ChangeView(
        **{name: getattr(view, name) for name in view.__struct_fields__},
        text=event_text(part, ""),
        by=getattr(event, "by", ""),
        reason=getattr(event, "reason", ""),
        rev=getattr(event, "rev", 0),
        base=getattr(event, "base", ""),
        version=getattr(event, "version", ""),
    )


async def _fork(service: RunService, row: RunRow) -> ForkView:
    """Return a fork, and what was said when it was made."""
    origin = await ForkService(service).original(row)
    seq = origin.seq if origin is not None else 0
    stored = await service.store.log.events(row.uid, after=Seq(seq), limit=FORK_EVENTS_MAX)
    made = next((event for one in stored if isinstance(event := e.decode(one.body), e.RunForked)), None)
    return ForkView(
        run=row.id,
        seq=seq,
        at=views.required_time(row.created_at),
        status=row.status,  # type: ignore[arg-type]  # stores keep statuses as text
        by=made.by if made is not None else "",
        reason=made.reason if made is not None else "",
    )
