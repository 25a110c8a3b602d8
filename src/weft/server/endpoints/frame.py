"""What a screen shows around everything else: who is asking, and what the listed runs wait for."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Annotated

import msgspec
from msgspec import Meta

from weft.core.ids import RunId
from weft.errors import NotFound
from weft.observe.activity import listed_activity, waits_for
from weft.observe.diagnosis import Progress
from weft.observe.run_hosts import live_hosts
from weft.server import views
from weft.server.request import ApiCall

RUNS_MAX = 50


class Me(msgspec.Struct, frozen=True):
    """The caller, and the server that it talks to."""

    name: str
    scopes: list[str]
    groups: list[str] | None
    """The groups for which the caller may answer questions; null if it is not identified and may use any name."""
    tenant: str
    is_open: bool
    """Whether the server has no keys, so that every program on its machine may do everything."""
    version: str
    store: str
    now: views.Moment


class WaitsQuery(views.Form, frozen=True, kw_only=True):
    """The runs that a list shows."""

    id: Annotated[list[views.Id], Meta(max_length=RUNS_MAX)] = msgspec.field(default_factory=list)


class WaitView(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run waits for, in a few words, and how far it is."""

    run: str
    waits_for: str = ""
    progress: list[Progress] = []


class Waits(msgspec.Struct, frozen=True):
    """What runs wait for. Runs that are over or that do not exist are left out."""

    waits: list[WaitView]


async def me(call: ApiCall) -> Me:
    """Return who is asking."""
    identity = call.identity
    return Me(
        name=identity.subject,
        scopes=sorted(identity.scopes),
        groups=sorted(identity.groups) if identity.groups is not None else None,
        tenant=identity.tenant,
        is_open=await call.services.is_open(),
        version=version("weft"),
        store=call.service.store.url,
        now=views.required_moment(call.service.clock.now_ms()),
    )


async def waits(call: ApiCall) -> Waits:
    """Return what runs wait for, for a list that shows them already."""
    asked = call.query_as(WaitsQuery)
    live = await live_hosts(call.service)
    found: list[WaitView] = []
    for run_id in dict.fromkeys(asked.id):
        try:
            row = await call.service.row(RunId(run_id))
        except NotFound:
            continue
        activity = await listed_activity(call.service, row, live)
        text = waits_for(row, activity)
        if text or activity.progress:
            found.append(WaitView(row.id, text, activity.progress))
        await asyncio.sleep(0)  # reading many runs must not block the loop
    return Waits(found)
