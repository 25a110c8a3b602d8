"""Bulks: one verb for many runs, with a dry run before it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec import Meta

from weft.core.ids import Millis
from weft.errors import BadValue, KeyReused, NotAllowed
from weft.runtime.bulk import RUNS_MAX, BulkService, find_verb
from weft.runtime.bulk_plan import BulkFilter, BulkOrder, BulkPlan, RefusedRuns
from weft.server import views
from weft.server.identity import AccessScope
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall, Reply
from weft.server.router import API

Ids = Annotated[list[Annotated[str, Meta(max_length=600)]], Meta(max_length=RUNS_MAX)]


class BulkFilterBody(views.Form, frozen=True, kw_only=True):
    """The runs that a bulk is for, as lists of runs are filtered."""

    workflow: views.Name | None = None
    status: views.Name | None = None
    since: datetime | None = None
    prefix: Annotated[str, Meta(max_length=600)] | None = None
    parent: Annotated[str, Meta(max_length=600)] | None = None
    where: dict[str, Any] = msgspec.field(default_factory=dict)


class NewBulk(views.Form, frozen=True, kw_only=True):
    """A verb, and the runs that it is for: by id, or by a filter.

    ``dry_run`` only counts. To apply exactly what a dry run showed, send its ids, uids and expects.
    """

    verb: views.Name
    ids: Ids = msgspec.field(default_factory=list)
    filter: BulkFilterBody = BulkFilterBody()
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    reason: views.Text = ""
    by: views.Text = ""
    """Who wants it. Ignored if the request has an API key, which says it."""
    review: Annotated[list[views.Name], Meta(max_length=100)] = msgspec.field(default_factory=list)
    """Who must agree before anything is done: ``team:ops``. One of them, and not the caller."""
    dry_run: bool = False
    uids: Ids = msgspec.field(default_factory=list)
    expects: dict[str, str] = msgspec.field(default_factory=dict)


class BulkView(msgspec.Struct, frozen=True, kw_only=True):
    """What a bulk does to the runs as they stand, and the run that carries it out, unless this is a dry run."""

    verb: str
    matched: int
    would_apply: int
    unchanged: int
    refused: list[RefusedRuns]
    ids: list[str]
    uids: list[str]
    options: dict[str, Any]
    expects: dict[str, str]
    run: str | None = None

    def plan(self) -> BulkPlan:
        """Return the plan, without the run."""
        return BulkPlan(**{name: getattr(self, name) for name in BulkPlan.__struct_fields__})


async def bulk(call: ApiCall) -> Reply:
    """Count what a bulk would do or, without ``dry_run``, start it."""
    new = call.body_as(NewBulk)
    if find_verb(new.verb).is_for_admins and not call.identity.may(AccessScope.ADMIN):
        what = f"{call.identity.subject} may not {new.verb} runs."
        raise RequestRefused(403, NotAllowed.code, what, hint="It needs the scope admin.")
    bulks = BulkService(call.service)
    found = await bulks.find(new.verb, call.key) if call.key is not None and not new.dry_run else None
    if found is not None:
        if new.uids and new.uids != list(found[1].uids):
            raise KeyReused(f'The key "{call.key}" was used for another bulk.')
        return _started(call, found)
    plan = _given(new) if new.uids else await bulks.plan(_order(new))
    if new.dry_run:
        return Reply(_view(plan))
    run = await bulks.start(plan, reason=new.reason, by=call.by(new.by), review=new.review, key=call.key)
    return _started(call, (run, plan))


def _started(call: ApiCall, bulk: tuple[str, BulkPlan]) -> Reply:
    run, plan = bulk
    where = f"{call.root}{API}/runs/{quote(run, safe='')}"
    return Reply(_view(plan, run), 202, {"location": where})


def _order(new: NewBulk) -> BulkOrder:
    wanted = new.filter
    return BulkOrder(
        verb=new.verb,
        ids=new.ids,
        filter=BulkFilter(
            workflow=wanted.workflow,
            status=wanted.status,
            since=Millis(int(wanted.since.timestamp() * 1000)) if wanted.since is not None else None,
            prefix=wanted.prefix,
            parent=wanted.parent,
            where=wanted.where,
        ),
        options=new.options,
    )


def _given(new: NewBulk) -> BulkPlan:
    """Return the plan of an earlier dry run. Raises BadValue."""
    if len(new.uids) != len(new.ids):
        raise BadValue(
            "There must be as many uids as ids.", hint="Send both as the dry run gave them.", code="value.wrong_type"
        )
    return BulkPlan(
        verb=new.verb,
        matched=len(new.ids),
        would_apply=len(new.ids),
        unchanged=0,
        refused=[],
        ids=new.ids,
        uids=new.uids,
        options=new.options,
        expects=new.expects,
    )


def _view(plan: BulkPlan, run: str | None = None) -> BulkView:
    fields = {name: getattr(plan, name) for name in plan.__struct_fields__}
    return BulkView(**fields, run=run)
