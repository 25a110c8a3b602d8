"""Live: the events of one run, or of all that fit a filter, as they are committed."""

from __future__ import annotations

from weft.runtime.tenancy import prefix_of
from weft.server import views
from weft.server.endpoints.runs import found
from weft.server.live.feed import Filter
from weft.server.live.resuming import NOTHING_MORE, is_reconnect, resumed
from weft.server.live.subscriptions import Batches, of_filter, of_run
from weft.server.request import Call, Reply


async def follow_run(call: Call) -> Batches | Reply:
    """The log of a run from its beginning, or from where the client stood, until it is over."""
    call.services.engine()
    row = await found(call)
    after = resumed(call)
    if row.ended_at is not None and is_reconnect(call) and after >= row.seq:
        return NOTHING_MORE
    return of_run(call.services, row, after)


async def follow_all(call: Call) -> Batches:
    """What this host commits from now on, or from where the client stood."""
    call.services.engine()
    asked = call.asked(views.LiveQuery)
    tenant = call.identity.tenant
    prefix = prefix_of(tenant) if tenant else ""
    wanted = Filter(asked.workflow, asked.status, frozenset(asked.kind), prefix)
    return of_filter(call.services, wanted, call.headers.get("last-event-id") or asked.after, call.caller)
