"""Filters of lists that people have saved for everybody in their tenant."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.core import values
from weft.errors import BadValue, LimitExceeded, NotFound
from weft.ports.saved_views import SavedView
from weft.server import views
from weft.server.cursors import cut_page
from weft.server.request import ApiCall

VIEWS_MAX = 200
"""How many views a tenant may save."""


class SavedViewView(msgspec.Struct, frozen=True, kw_only=True):
    """A saved filter. ``query`` is as in the address of the list: ``status=failed&workflow=order``."""

    name: str
    query: str
    saved_by: str
    saved_at: views.Moment


class SavedViewList(msgspec.Struct, frozen=True):
    views: list[SavedViewView]
    cursor: str | None


class NewView(views.Form, frozen=True, kw_only=True):
    query: Annotated[str, Meta(max_length=2_000)]
    by: views.Text = ""
    """Who saves it. Ignored if the request has an API key, which says it."""


async def list_views(call: ApiCall) -> SavedViewList:
    """Return a page of the saved views of the caller's tenant, by name."""
    query = call.query_as(views.PageQuery)
    found = await call.service.store.saved_views.list(call.identity.tenant)
    page, cursor = cut_page(found, query.limit, query.cursor)
    return SavedViewList([_saved_view(one) for one in page], cursor)


async def put_view(call: ApiCall) -> SavedViewView:
    """Save a view, in place of the one with its name. Raises LimitExceeded, BadValue."""
    new, name, tenant = call.body_as(NewView), call.parameters["name"], call.identity.tenant
    if name in {".", ".."} or not name.isprintable():
        raise BadValue(f"{name[:60]!r} cannot be the name of a view.", hint="Use visible characters.")
    values.encode([name, new.query, new.by], what="the view has")
    known = await call.service.store.saved_views.list(tenant)
    if len(known) >= VIEWS_MAX and name not in {one.name for one in known}:
        raise LimitExceeded(f"There are {VIEWS_MAX} saved views already.", hint="Remove one of them first.")
    now = call.service.clock.now_ms()
    view = SavedView(tenant=tenant, name=name, query=new.query, saved_by=call.by(new.by), saved_at=now)
    await call.service.store.saved_views.put(view)
    return _saved_view(view)


async def remove_view(call: ApiCall) -> views.Nothing:
    """Remove a saved view. Raises NotFound."""
    name = call.parameters["name"]
    if not await call.service.store.saved_views.remove(call.identity.tenant, name):
        raise NotFound(f"There is no saved view {name[:60]!r}.")
    return views.Nothing()


def _saved_view(view: SavedView) -> SavedViewView:
    at = views.required_time(view.saved_at)
    return SavedViewView(name=view.name, query=view.query, saved_by=view.saved_by, saved_at=at)
