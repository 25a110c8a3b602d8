"""What a screen shows around everything else: who is asking, and what the listed runs wait for."""

from __future__ import annotations

import asyncio
import hashlib
from functools import cache
from importlib.metadata import version
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from weft.core.ids import RunId
from weft.errors import NotFound
from weft.observe.activity import listed_activity, waits_text
from weft.observe.diagnosis import Progress
from weft.observe.run_hosts import LiveHosts, live_hosts
from weft.runtime.service import RunService
from weft.server import views
from weft.server.access.gate import AccessGate
from weft.server.identity import NOBODY
from weft.server.request import ApiCall

RUNS_MAX = 50
NO_HOST = "No host performs steps. Run the program of your workflows, or weft serve app.py."


class Notice(msgspec.Struct, frozen=True):
    """Something that everybody who looks should know. ``kind`` is stable; ``text`` says it."""

    kind: Literal["no_host", "store"]
    text: str


class Me(msgspec.Struct, frozen=True):
    """The caller, and the server that it talks to."""

    name: str
    scopes: list[str]
    groups: list[str] | None
    """The groups for which the caller may answer questions; null if it is not identified and may use any name."""
    tenant: str
    is_open: bool
    """Whether the server has no keys, so that every program on its machine may do everything."""
    sign_in: list[str]
    """How a browser can sign in: ``key`` (``POST session``), ``oidc`` (go to ``session/oidc?next=…``)."""
    is_signed_in: bool
    """Whether the caller is identified by the session of a browser, which it can end."""
    host: str
    """The host in the process of the server; empty if it hosts nothing, and hears of no commits."""
    dev_error: str
    """Under ``weft dev``, why the code that was saved last is not running. A frame ``dev`` of ``live`` says it too."""
    hosts: int
    """How many living hosts share the store."""
    version: str
    build: str
    """Names the files of the web UI, so that a page finds out that it is older than the server."""
    store: str
    now: views.Moment
    warnings: list[Notice]


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
    """Return who is asking. Somebody unknown learns only how to sign in."""
    identity = call.identity
    gate = call.services.gate
    is_open = await call.services.is_open()
    provider = isinstance(gate, AccessGate) and gate.provider is not None
    sign_in = [] if is_open else ["key", "oidc"] if provider else ["key"]
    known, local = identity is not NOBODY, call.services.runs.local
    is_signed_in = known and not is_open and "authorization" not in call.headers
    live = await live_hosts(call.services.runs) if known else {}
    return Me(
        name=identity.subject,
        scopes=sorted(identity.scopes),
        groups=sorted(identity.groups) if identity.groups is not None else None,
        tenant=identity.tenant,
        is_open=is_open,
        sign_in=sign_in,
        is_signed_in=is_signed_in,
        host=local.host if known and local is not None else "",
        dev_error=call.services.dev_error if known else "",
        hosts=len(live),
        version=version("weft") if known else "",
        build=_build(call.services.web.index or ""),
        store=call.service.store.url if known else "",
        now=views.required_time(call.service.clock.now_ms()),
        warnings=_warnings(call.services.runs, live) if known else [],
    )


@cache
def _build(index: str) -> str:
    return hashlib.blake2b(index.encode(), digest_size=8).hexdigest() if index else ""


def _warnings(service: RunService, live: LiveHosts) -> list[Notice]:
    found = []
    if not any(about.get("workflows") or about.get("queues") for about in live.values()):
        found.append(Notice("no_host", NO_HOST))
    trouble = service.trouble()
    if trouble is not None:
        found.append(Notice("store", str(trouble)))
    return found


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
        text = waits_text(row, activity)
        if text or activity.progress:
            found.append(WaitView(row.id, text, activity.progress))
        await asyncio.sleep(0)  # reading many runs must not block the loop
    return Waits(found)
