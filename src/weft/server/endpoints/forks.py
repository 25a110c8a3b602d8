"""Forks of runs."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.core.events import Effects
from weft.core.ids import RunId
from weft.errors import Refused
from weft.observe.box_diff import BoxDifference, PartingPoint, box_differences, parting_point
from weft.observe.diff import Diff, DiffService
from weft.observe.dry_runs import dry_fork, plan_or_refusal
from weft.observe.pictures import Picture
from weft.observe.pictures.drawn import DrawnPicture
from weft.observe.pictures.union import union_of
from weft.runtime.fork_order import ForkOrder
from weft.runtime.forks import Forked, ForkService
from weft.server import views
from weft.server.endpoints.runs import requested_run
from weft.server.request import ApiCall, ApiReply

Values = Annotated[dict[str, Any], Meta(max_length=100)]


class NewFork(views.Form, frozen=True, kw_only=True):
    """A fork to make: one point, edits, and what it does with work that the original has performed."""

    at: Annotated[int, Meta(ge=1)] | None = None
    """The number of the last event that both runs share. Without a point, the fork begins anew."""
    before: views.Id | None = None
    """Or the point before the run came to this place."""
    after: views.Id | None = None
    failure: bool = False
    """Or the point before the work began whose failure ended the run."""
    visit: Annotated[int, Meta(ge=1)] | None = None
    """Which visit of the place, from 1; the last by default."""
    input: Values = msgspec.field(default_factory=dict)
    """Arguments that change."""
    words: Annotated[list[views.Name], Meta(max_length=100)] = msgspec.field(default_factory=list)
    """The names of arguments that were typed as text. The workflow's types say how they are read."""
    set: Values = msgspec.field(default_factory=dict)
    """Results of steps, by place."""
    state: Values = msgspec.field(default_factory=dict)
    given: Values = msgspec.field(default_factory=dict)
    to: views.Name | None = None
    """The version of the code with which the fork goes on."""
    effects: Effects = "perform"
    approved: Annotated[list[views.Id], Meta(max_length=100)] = msgspec.field(default_factory=list)
    """Places whose irreversible work may be performed without asking."""
    id: views.Id | None = None
    reason: views.Text = ""
    by: views.Text = ""
    """Who makes it. Ignored if the request has an API key, which says it."""
    dry_run: bool = False
    """Only return what would happen."""

    def order(self) -> ForkOrder:
        """Return the order for the service."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in ("by", "dry_run")}
        return ForkOrder(**fields | {name: fields[name] or "" for name in ("before", "after", "to")})


async def fork(call: ApiCall) -> ApiReply:
    """Fork a run. A repeated request with the same key makes no second fork."""
    new = call.body_as(NewFork)
    if new.dry_run:
        row = await requested_run(call)
        viewed, _ = await call.services.viewed.get_readable(call.service, row)
        return ApiReply(await plan_or_refusal(lambda: dry_fork(call.service, row, new.order(), viewed.log)))
    who = call.by(new.by)
    forked: Forked = await ForkService(call.service).fork(call.parameters["id"], new.order(), by=who, key=call.key)
    return ApiReply(forked, 201)


class DiffQuery(views.Form, frozen=True, kw_only=True):
    """How much of each run is compared."""

    at_a: Annotated[int, Meta(ge=1)] | None = None
    """Only the events of the first run up to this one."""
    at_b: Annotated[int, Meta(ge=1)] | None = None


class RunsDiff(Diff, frozen=True, kw_only=True):
    """The differences between two runs, place by place and box by box."""

    boxes: list[BoxDifference]
    """All boxes of both pictures."""
    parting: PartingPoint


async def diff(call: ApiCall) -> RunsDiff:
    """Compare two runs."""
    asked = call.query_as(DiffQuery)
    service = call.service
    rows = [await service.row(RunId(call.parameters[name])) for name in ("id", "other")]
    found = await DiffService(service).runs(*rows, at_a=asked.at_a, at_b=asked.at_b)
    assert found.runs is not None
    viewed = [await call.services.viewed.get(service, row) for row in rows]
    ends = found.a.seq, found.b.seq
    sides = [(one.log, await one.standing(service, row, seq)) for one, row, seq in zip(viewed, rows, ends, strict=True)]
    return RunsDiff(
        **{name: getattr(found, name) for name in found.__struct_fields__},
        boxes=box_differences(sides[0], sides[1], found.runs),
        parting=parting_point(viewed[0].log, viewed[1].log, ends),
    )


async def united_picture(call: ApiCall) -> DrawnPicture:
    """Return one picture with the boxes and arrows of two runs."""
    asked = call.query_as(DiffQuery)
    found: list[Picture] = []
    for name, at in (("id", asked.at_a), ("other", asked.at_b)):
        row = await call.service.row(RunId(call.parameters[name]))
        viewed = await call.services.viewed.get(call.service, row)
        picture = await viewed.picture(call.service, row, min(at or viewed.log.seq, viewed.log.seq))
        if picture is None:
            raise Refused(f"{row.id} has not begun, so there is nothing to compare.", code="fork.not_possible")
        found.append(picture)
    return await call.services.viewed.drawn(union_of(found[0], found[1]))
