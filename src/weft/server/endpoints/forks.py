"""Forks of runs."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.core.events import Effects
from weft.observe.diff import Diff, DiffService
from weft.runtime.fork_order import ForkOrder
from weft.runtime.forks import Forked, ForkService
from weft.server import views
from weft.server.request import ApiCall, Reply

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

    def order(self) -> ForkOrder:
        """Return the order for the service."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "by"}
        return ForkOrder(**fields | {name: fields[name] or "" for name in ("before", "after", "to")})


async def fork(call: ApiCall) -> Reply:
    """Fork a run. A repeated request with the same key makes no second fork."""
    new = call.body_as(NewFork)
    who = call.by(new.by)
    forked: Forked = await ForkService(call.service).fork(call.parameters["id"], new.order(), by=who, key=call.key)
    return Reply(forked, 201)


class DiffQuery(views.Form, frozen=True, kw_only=True):
    """How much of each run is compared."""

    at_a: Annotated[int, Meta(ge=1)] | None = None
    """Only the events of the first run up to this one."""
    at_b: Annotated[int, Meta(ge=1)] | None = None


async def diff(call: ApiCall) -> Diff:
    """Compare two runs."""
    asked = call.query_as(DiffQuery)
    ids = call.parameters["id"], call.parameters["other"]
    return await DiffService(call.service).by_ids(*ids, at_a=asked.at_a, at_b=asked.at_b)
