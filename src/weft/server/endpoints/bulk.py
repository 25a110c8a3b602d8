"""Bulks: one verb for many runs, with a dry run before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta

from weft.core.durations import duration_ms
from weft.core.ids import Millis, RunId
from weft.errors import BadValue, KeyReused, NotAllowed, UsageError
from weft.observe.run_search import RunSearch, WaitsFor, find_runs
from weft.ports.run_query import RunQuery
from weft.ports.store import OPEN_STATUSES, RunRow
from weft.runtime.bulk import RUNS_MAX, BulkService, find_verb
from weft.runtime.bulk_plan import BulkFilter, BulkOrder, BulkPlan, RefusedRuns
from weft.runtime.service import RunService
from weft.server import views
from weft.server.identity import AccessScope
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall, ApiReply
from weft.server.router import API

PAGE = 500
Ids = Annotated[list[Annotated[str, Meta(max_length=600)]], Meta(max_length=RUNS_MAX)]


class BulkFilterBody(views.Form, frozen=True, kw_only=True):
    """The runs that a bulk is for, as lists of runs are filtered."""

    workflow: views.Name | None = None
    status: views.Status | Annotated[list[views.Status], Meta(max_length=20)] | None = None
    """A status, or any of several."""
    style: Literal["code", "graph", "goal"] | None = None
    version: views.Name | None = None
    since: views.Moment | None = None
    until: views.Moment | None = None
    unchanged: Annotated[str, Meta(min_length=2, max_length=20)] | None = None
    """A duration such as ``1h``: runs that recorded nothing for so long. Without a status, only open ones."""
    waits: Annotated[list[WaitsFor], Meta(max_length=5)] = msgspec.field(default_factory=list)
    """Open runs that wait for any of these."""
    q: Annotated[str, Meta(max_length=500)] = ""
    """The beginning of the id or of the workflow."""
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


async def bulk(call: ApiCall) -> ApiReply:
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
    plan = _earlier_plan(new) if new.uids else await _plan(bulks, call.service, new)
    if new.dry_run:
        return ApiReply(_bulk_view(plan))
    run = await bulks.start(plan, reason=new.reason, by=call.by(new.by), review=new.review, key=call.key)
    return _started(call, (run, plan))


def _started(call: ApiCall, bulk: tuple[str, BulkPlan]) -> ApiReply:
    run, plan = bulk
    where = f"{call.root}{API}/runs/{quote(run, safe='')}"
    return ApiReply(_bulk_view(plan, run), 202, {"location": where})


async def _plan(bulks: BulkService, service: RunService, new: NewBulk) -> BulkPlan:
    """Plan a bulk. Runs that only a list can find are found here, and named. Raises UsageError, NotFound."""
    wanted = new.filter
    statuses: list[str] = [wanted.status] if isinstance(wanted.status, str) else [*(wanted.status or ())]
    plain = BulkFilter(
        workflow=wanted.workflow,
        status=statuses[0] if len(statuses) == 1 else None,
        since=_millis(wanted.since),
        prefix=wanted.prefix,
        parent=wanted.parent,
        where=wanted.where,
    )
    listed = (wanted.style, wanted.version, wanted.until, wanted.unchanged)
    is_plain = len(statuses) < 2 and not (wanted.waits or wanted.q) and all(one is None for one in listed)
    if is_plain:
        return await bulks.plan(BulkOrder(verb=new.verb, ids=new.ids, filter=plain, options=new.options))
    if new.ids:
        message = "A bulk is for runs by their ids, or for those that a filter finds, not both."
        raise UsageError(message, hint="Leave out the ids or the filter.", code="bulk.no_runs")
    ids = [row.id async for row in _find_runs(service, wanted, statuses)]
    if not ids:
        return _earlier_plan(new)
    return await bulks.plan(BulkOrder(verb=new.verb, ids=ids, options=new.options))


async def _find_runs(service: RunService, wanted: BulkFilterBody, statuses: list[str]) -> AsyncIterator[RunRow]:
    """Yield the runs that a filter of a list finds, up to one more than a bulk may be for."""
    parent = (await service.row(RunId(wanted.parent))).uid if wanted.parent is not None else None
    changed_before = None
    if wanted.unchanged is not None:
        changed_before = Millis(service.clock.now_ms() - duration_ms(wanted.unchanged))
    query = RunQuery(
        workflow=wanted.workflow,
        statuses=statuses or (OPEN_STATUSES if changed_before is not None else ()),
        style=wanted.style,
        version=wanted.version,
        since=_millis(wanted.since),
        until=_millis(wanted.until),
        changed_before=changed_before,
        where=wanted.where,
        id_prefix=wanted.prefix,
        parent=parent,
        limit=PAGE,
    )
    after, count = None, 0
    while count <= RUNS_MAX:
        paged = msgspec.structs.replace(query, after=after)
        page = await find_runs(service, RunSearch(query=paged, q=wanted.q, waits=wanted.waits))
        for row in page.rows:
            count += 1
            yield row
        after = page.cursor
        if after is None:
            return


def _millis(at: datetime | None) -> Millis | None:
    return Millis(int(at.timestamp() * 1000)) if at is not None else None


def _earlier_plan(new: NewBulk) -> BulkPlan:
    """Return the plan of an earlier dry run, or one for no runs at all. Raises BadValue."""
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


def _bulk_view(plan: BulkPlan, run: str | None = None) -> BulkView:
    fields = {name: getattr(plan, name) for name in plan.__struct_fields__}
    return BulkView(**fields, run=run)
